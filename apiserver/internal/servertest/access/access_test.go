package access

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

func (c *cluster) whoami(client *rest.Client) (authenticationv1.UserInfo, error) {
	var review authenticationv1.SelfSubjectReview
	err := client.Do(c.T.Context(), http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &authenticationv1.SelfSubjectReview{}, &review)
	return review.Status.UserInfo, err
}

func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	c := start(t)
	stranger, err := pki.NewCA("stranger", time.Now(), time.Hour)
	c.Must(err)
	tests := map[string]struct {
		client *rest.Client
		user   string // "" for 401
		groups []string
	}{
		"token":             {c.Token("nobody"), "jane", []string{"dev", "system:authenticated"}},
		"wrong token":       {c.Token("guess"), "", nil},
		"nothing":           {c.Token(""), "", nil},
		"a JWT of nobody's": {c.Token("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMuY2x1c3Rlci5sb2NhbCJ9."), "", nil},
		"certificate": {c.Certificate(c.CA, pki.Subject{CommonName: "bob", Organization: []string{"ops"}, Client: true}), "bob",
			[]string{"ops", "system:authenticated"}},
		"certificate of a stranger": {c.Certificate(stranger, pki.Subject{CommonName: "root", Organization: []string{"system:masters"}, Client: true}), "", nil},
		"certificate for a server":  {c.Certificate(c.CA, pki.Subject{CommonName: "bob", Server: true}), "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			user, err := c.whoami(test.client)
			if test.user == "" {
				if !apierrors.IsUnauthorized(err) {
					t.Fatalf("got in as %q (%v)", user.Username, err)
				}
				return
			}
			if err != nil || user.Username != test.user || !slices.Equal(user.Groups, test.groups) {
				t.Errorf("%+v %v", user, err)
			}
		})
	}
}

func TestAnonymous(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.AnonymousAuth = true })
	nobody := c.Token("")
	c.Must(nobody.Do(t.Context(), http.MethodGet, "/version", nil, nil))
	err := nobody.Resource(core.Pods, "default").List(t.Context(), &corev1.PodList{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:anonymous" cannot list resource "pods"`) {
		t.Errorf("anonymous: %v", err)
	}
	if err := c.Token("guess").Do(t.Context(), http.MethodGet, "/version", nil, nil); !apierrors.IsUnauthorized(err) {
		t.Errorf("a bad token became anonymous: %v", err)
	}
}

// TestHealthIsForAnybody: by default, anonymous requests learn whether the
// server is well, and nothing else.
func TestHealthIsForAnybody(t *testing.T) {
	t.Parallel()
	c := start(t)
	ask := func(token, path string) error { return c.Token(token).Do(t.Context(), http.MethodGet, path, nil, nil) }
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		c.Must(ask("", path))
		if err := ask("guess", path); !apierrors.IsUnauthorized(err) {
			t.Errorf("a bad token became anonymous: %v", err)
		}
	}
	for _, path := range []string{"/", "/version", "/livez/etcd", "/metrics", "/api", "/livez/../api"} {
		if err := ask("", path); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s without a credential: %v", path, err)
		}
	}
}

func TestRightsComeAndGo(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	jane := c.Token("nobody").Resource(core.Pods, "shop")
	list := func(ctx context.Context) error { return jane.List(ctx, &corev1.PodList{}) }
	want := `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "shop"`
	if err := list(t.Context()); !apierrors.IsForbidden(err) || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	bindings := c.Root().Resource(core.RoleBindings, "shop")
	c.Must(bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "dev"}},
	}, nil))
	c.Until("the binding counts", func(ctx context.Context) bool { return list(ctx) == nil })
	if err := jane.Create(t.Context(), servertest.Pod("web"), nil); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer created a pod: %v", err)
	}
	if err := c.Token("nobody").Resource(core.Secrets, "shop").List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer reads secrets: %v", err)
	}
	c.Must(bindings.Delete(t.Context(), "view", nil, nil))
	c.Until("the binding no longer counts", func(ctx context.Context) bool { return apierrors.IsForbidden(list(ctx)) })
}

func TestNobodyGivesWhatTheyDoNotHave(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.Must(c.Root().Resource(core.RoleBindings, "shop").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}},
	}, nil))
	jane := c.Token("nobody")
	roles, bindings := jane.Resource(core.Roles, "shop"), jane.Resource(core.RoleBindings, "shop")
	role := func(name string, verbs []string, group, resource string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource},
		}}}
	}
	binding := func(name, kind, ref string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: ref},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}},
		}
	}
	c.Until("jane is admin of shop", func(ctx context.Context) bool {
		err := roles.Create(ctx, role("pods", []string{"get"}, "", "pods"), nil)
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	if err := roles.Create(t.Context(), role("all", []string{"*"}, "*", "*"), nil); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "not currently held") {
		t.Errorf("a role with everything: %v", err)
	}
	c.Until("a role of what she has can be bound", func(ctx context.Context) bool {
		err := bindings.Create(ctx, binding("pods", "Role", "pods"), nil)
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	if err := bindings.Create(t.Context(), binding("root", "ClusterRole", "cluster-admin"), nil); !apierrors.IsForbidden(err) {
		t.Errorf("bound cluster-admin: %v", err)
	}
	if err := bindings.Create(t.Context(), binding("none", "ClusterRole", "not-there"), nil); !apierrors.IsNotFound(err) {
		t.Errorf("bound a role that is not there: %v", err)
	}
	// An aggregated role's label gives its rules to all roles that aggregate it.
	c.Must(c.Root().Resource(core.ClusterRoles, "").Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "patcher"}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"patch"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
		}},
	}, nil))
	c.Bind("patcher", "patcher", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"})
	c.Must(c.Root().Resource(core.RoleBindings, "shop").Create(t.Context(), binding("root", "ClusterRole", "cluster-admin"), nil))
	for _, path := range []string{core.ClusterRoles.Path("", "cluster-admin"), core.RoleBindings.Path("shop", "root")} {
		patch := func(body string) int {
			answer, _ := c.Ask(http.MethodPatch, path, http.Header{"Content-Type": {string(types.MergePatchType)}, "Impersonate-User": {"jane"}}, []byte(body))
			return answer.StatusCode
		}
		c.Until("jane may patch "+path, func(context.Context) bool { return patch(`{"metadata":{"finalizers":["a.b/c"]}}`) == http.StatusOK })
		if code := patch(`{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-admin":"true"}}}`); code != http.StatusForbidden {
			t.Errorf("%s has a label more: %d", path, code)
		}
	}
}

func TestKubeletReachesItsOwnOnly(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	kubelet := c.Certificate(c.CA, pki.Subject{CommonName: "system:node:n1", Organization: []string{"system:nodes"}, Client: true})
	nodes := kubelet.Resource(core.Nodes, "")
	c.Must(nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil))
	if err := nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("registered another node: %v", err)
	}
	secrets := c.Root().Resource(core.Secrets, "shop")
	for _, name := range []string{"key", "other"} {
		c.Must(secrets.Create(t.Context(), &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
	}
	p := servertest.Pod("web")
	p.Spec.NodeName = "n1"
	p.Spec.Volumes = []corev1.Volume{{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}}}
	c.AwaitServiceAccount("shop")
	c.Created("shop", p)
	c.Until("the pod's secret is the kubelet's", func(ctx context.Context) bool {
		return kubelet.Resource(core.Secrets, "shop").Get(ctx, "key", &core.Secret{}) == nil
	})
	if err := kubelet.Resource(core.Secrets, "shop").Get(t.Context(), "other", &core.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("another secret: %v", err)
	}
	for name, allowed := range map[string]bool{"metadata.name=key": true, "metadata.name=other": false, "": false} {
		var list corev1.SecretList
		err := kubelet.Resource(core.Secrets, "shop").List(t.Context(), &list, rest.FieldSelector(name))
		if allowed != (err == nil) || !allowed && !apierrors.IsForbidden(err) || allowed && len(list.Items) != 1 {
			t.Errorf("list of secrets with %q: %d, %v", name, len(list.Items), err)
		}
		stream, err := kubelet.Resource(core.Secrets, "shop").Watch(t.Context(), rest.FieldSelector(name),
			rest.Query("resourceVersion", list.ResourceVersion))
		if allowed != (err == nil) || !allowed && !apierrors.IsForbidden(err) {
			t.Errorf("watch of secrets with %q: %v", name, err)
		}
		if err != nil {
			continue
		}
		for _, changed := range []string{"other", "key"} {
			c.Must(secrets.Update(t.Context(), changed, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: changed}, StringData: map[string]string{"k": "v"}}, nil))
		}
		event, err := stream.Next()
		var secret core.Secret
		if err != nil || json.Unmarshal(event.Object, &secret) != nil || secret.Name != "key" || string(secret.Data["k"]) != "v" {
			t.Errorf("the watch told %s, %v", event.Object, err)
		}
		c.Must(stream.Close())
	}
	c.Must(kubelet.Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}, rest.FieldSelector("spec.nodeName=n1")))
	if err := kubelet.Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("all pods: %v", err)
	}
}

func TestServiceAccountToken(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	request := func(audiences ...string) string {
		answer := &authenticationv1.TokenRequest{}
		path := core.ServiceAccounts.Path("shop", "default") + "/token"
		c.Must(c.Root().Do(t.Context(), http.MethodPost, path, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, answer))
		return answer.Status.Token
	}
	token := request()
	user, err := c.whoami(c.Token(token))
	if err != nil || user.Username != "system:serviceaccount:shop:default" {
		t.Errorf("%+v %v", user, err)
	}
	if _, err := c.whoami(c.Token(token[:len(token)-4] + "AAAA")); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong signature: %v", err)
	}
	if _, err := c.whoami(c.Token(request("vault"))); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for another audience: %v", err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request("vault"), Audiences: []string{"vault"}}}
	c.Must(c.Root().Do(t.Context(), http.MethodPost, core.TokenReviews.Path("", ""), review, review))
	// A review can't be printed as a table, but can be had as YAML.
	asked, err := json.Marshal(review)
	c.Must(err)
	as := func(accept string) *http.Response {
		answer, _ := c.Ask(http.MethodPost, core.TokenReviews.Path("", ""), http.Header{"Content-Type": {"application/json"}, "Accept": {accept}}, asked)
		return answer
	}
	if answer := as("application/json;as=Table;g=meta.k8s.io;v=v1"); answer.StatusCode != http.StatusNotAcceptable {
		t.Errorf("asked for as a table, a review is %s", answer.Status)
	}
	if answer := as("application/yaml"); answer.Header.Get("Content-Type") != "application/yaml" {
		t.Errorf("asked for as YAML, a review is %s", answer.Header.Get("Content-Type"))
	}
	if !review.Status.Authenticated || !slices.Equal(review.Status.Audiences, []string{"vault"}) || review.Status.User.Username != user.Username {
		t.Errorf("review: %+v", review.Status)
	}
	// A deleted service account's tokens are invalid.
	fresh := request("other")
	c.Must(c.Root().Resource(core.ServiceAccounts, "shop").Delete(t.Context(), "default", nil, nil))
	c.Until("the account's token is no longer good", func(ctx context.Context) bool {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: fresh, Audiences: []string{"other"}}}
		c.Must(c.Root().Do(ctx, http.MethodPost, core.TokenReviews.Path("", ""), review, review))
		return !review.Status.Authenticated && review.Status.Error != ""
	})
}

func TestAccessReviews(t *testing.T) {
	t.Parallel()
	c := start(t)
	ask := func(spec authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		c.Must(c.Root().Do(t.Context(), http.MethodPost, core.AccessReviews.Path("", ""), review, review))
		return review.Status
	}
	pods := &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Version: "v1"}
	if status := ask(authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: pods}); status.Allowed {
		t.Errorf("jane: %+v", status)
	}
	if status := ask(authorizationv1.SubjectAccessReviewSpec{User: core.UserScheduler, ResourceAttributes: pods}); !status.Allowed || status.Reason == "" {
		t.Errorf("scheduler: %+v", status)
	}
	path := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/version"}
	jane := authorizationv1.SubjectAccessReviewSpec{User: "jane", Groups: []string{"system:authenticated"}, NonResourceAttributes: path}
	if status := ask(jane); !status.Allowed {
		t.Errorf("version: %+v", status)
	}
	err := c.Root().Do(t.Context(), http.MethodPost, core.AccessReviews.Path("", ""), &authorizationv1.SubjectAccessReview{}, nil)
	if !apierrors.IsInvalid(err) {
		t.Errorf("a review without a user: %v", err)
	}
	err = c.Token("nobody").Do(t.Context(), http.MethodPost, core.AccessReviews.Path("", ""), &authorizationv1.SubjectAccessReview{}, nil)
	if !apierrors.IsForbidden(err) {
		t.Errorf("jane asks about others: %v", err)
	}
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	c.Must(c.Token("nobody").Do(t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules, rules))
	if len(rules.Status.ResourceRules) == 0 || len(rules.Status.NonResourceRules) == 0 {
		t.Errorf("rules: %+v", rules.Status)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	t.Run("AlwaysAllow", func(t *testing.T) {
		c := start(t, func(o *config.Options) { o.AuthorizationModes = []string{config.ModeAlwaysAllow} })
		c.Must(c.Token("nobody").Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}))
	})
	t.Run("AlwaysDeny", func(t *testing.T) {
		c := start(t, func(o *config.Options) { o.AuthorizationModes = []string{config.ModeAlwaysDeny} })
		if err := c.Token("nobody").Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
			t.Errorf("jane: %v", err)
		}
		c.Must(c.Root().Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}))
	})
}
