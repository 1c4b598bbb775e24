package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/config"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

func (c *cluster) whoami(client *rest.Client) (authenticationv1.UserInfo, error) {
	var review authenticationv1.SelfSubjectReview
	err := client.Do(c.t.Context(), http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &authenticationv1.SelfSubjectReview{}, &review)
	return review.Status.UserInfo, err
}

func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	c := start(t)
	stranger, err := pki.NewCA("stranger", time.Now(), time.Hour)
	c.must(err)
	tests := map[string]struct {
		client *rest.Client
		user   string // "" for 401
		groups []string
	}{
		"token":                     {c.token("nobody"), "jane", []string{"dev", "system:authenticated"}},
		"wrong token":               {c.token("guess"), "", nil},
		"nothing":                   {c.token(""), "", nil},
		"a JWT of nobody's":         {c.token("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMuY2x1c3Rlci5sb2NhbCJ9."), "", nil},
		"certificate":               {c.certificate(c.ca, pki.Subject{CommonName: "bob", Organization: []string{"ops"}, Client: true}), "bob", []string{"ops", "system:authenticated"}},
		"certificate of a stranger": {c.certificate(stranger, pki.Subject{CommonName: "root", Organization: []string{"system:masters"}, Client: true}), "", nil},
		"certificate for a server":  {c.certificate(c.ca, pki.Subject{CommonName: "bob", Server: true}), "", nil},
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
	nobody := c.token("")
	c.must(nobody.Do(t.Context(), http.MethodGet, "/version", nil, nil))
	err := nobody.Resource(core.Pods, "default").List(t.Context(), &corev1.PodList{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:anonymous" cannot list resource "pods"`) {
		t.Errorf("anonymous: %v", err)
	}
	if err := c.token("guess").Do(t.Context(), http.MethodGet, "/version", nil, nil); !apierrors.IsUnauthorized(err) {
		t.Errorf("a bad token became anonymous: %v", err)
	}
}

// TestHealthIsForAnybody: without a word about anonymous requests, these get to
// know whether the server is well, and nothing else.
func TestHealthIsForAnybody(t *testing.T) {
	t.Parallel()
	c := start(t)
	ask := func(token, path string) error { return c.token(token).Do(t.Context(), http.MethodGet, path, nil, nil) }
	for _, path := range healthPaths {
		c.must(ask("", path))
		if err := ask("guess", path); !apierrors.IsUnauthorized(err) {
			t.Errorf("a bad token became anonymous: %v", err)
		}
	}
	for _, path := range []string{"/", "/version", "/livez/etcd", "/metrics", "/api", "/livez/../api"} {
		if err := ask("", path); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s without a credential: %v", path, err)
		}
	}
	for flags, want := range map[string]authn.AnonymousRule{
		"": {Enabled: true, Paths: healthPaths}, "--anonymous-auth=false": {}, "--anonymous-auth": {Enabled: true},
	} {
		o, set := config.Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(set)
		c.must(set.Parse(strings.Fields(flags)))
		if got := (&Server{options: o}).anonymousByFlag(); got.Enabled != want.Enabled || !slices.Equal(got.Paths, want.Paths) {
			t.Errorf("%q: %+v, want %+v", flags, got, want)
		}
	}
}

func TestRightsComeAndGo(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.namespace("shop")
	jane := c.token("nobody").Resource(core.Pods, "shop")
	list := func(ctx context.Context) error { return jane.List(ctx, &corev1.PodList{}) }
	want := `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "shop"`
	if err := list(t.Context()); !apierrors.IsForbidden(err) || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	bindings := c.root().Resource(core.RoleBindings, "shop")
	c.must(bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "dev"}},
	}, nil))
	c.until("the binding counts", func(ctx context.Context) bool { return list(ctx) == nil })
	if err := jane.Create(t.Context(), pod("web"), nil); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer created a pod: %v", err)
	}
	if err := c.token("nobody").Resource(core.Secrets, "shop").List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer reads secrets: %v", err)
	}
	c.must(bindings.Delete(t.Context(), "view", nil, nil))
	c.until("the binding no longer counts", func(ctx context.Context) bool { return apierrors.IsForbidden(list(ctx)) })
}

func TestNobodyGivesWhatTheyDoNotHave(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.namespace("shop")
	c.must(c.root().Resource(core.RoleBindings, "shop").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}},
	}, nil))
	jane := c.token("nobody")
	roles, bindings := jane.Resource(core.Roles, "shop"), jane.Resource(core.RoleBindings, "shop")
	role := func(name string, verbs []string, group, resource string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}}}
	}
	binding := func(name, kind, ref string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: ref},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}},
		}
	}
	c.until("jane is admin of shop", func(ctx context.Context) bool {
		err := roles.Create(ctx, role("pods", []string{"get"}, "", "pods"), nil)
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	if err := roles.Create(t.Context(), role("all", []string{"*"}, "*", "*"), nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not currently held") {
		t.Errorf("a role with everything: %v", err)
	}
	c.until("a role of what she has can be bound", func(ctx context.Context) bool {
		err := bindings.Create(ctx, binding("pods", "Role", "pods"), nil)
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	if err := bindings.Create(t.Context(), binding("root", "ClusterRole", "cluster-admin"), nil); !apierrors.IsForbidden(err) {
		t.Errorf("bound cluster-admin: %v", err)
	}
	if err := bindings.Create(t.Context(), binding("none", "ClusterRole", "not-there"), nil); !apierrors.IsNotFound(err) {
		t.Errorf("bound a role that is not there: %v", err)
	}
	// A label is no rule, and yet gives those of a role to all that aggregate it.
	c.must(c.root().Resource(core.ClusterRoles, "").Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "patcher"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"patch"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}}},
	}, nil))
	c.bind("patcher", "patcher", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"})
	c.must(c.root().Resource(core.RoleBindings, "shop").Create(t.Context(), binding("root", "ClusterRole", "cluster-admin"), nil))
	for _, path := range []string{core.ClusterRoles.Path("", "cluster-admin"), core.RoleBindings.Path("shop", "root")} {
		patch := func(body string) int {
			answer, _ := c.ask(http.MethodPatch, path, http.Header{"Content-Type": {merging}, "Impersonate-User": {"jane"}}, []byte(body))
			return answer.StatusCode
		}
		c.until("jane may patch "+path, func(context.Context) bool { return patch(`{"metadata":{"finalizers":["a.b/c"]}}`) == http.StatusOK })
		if code := patch(`{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-admin":"true"}}}`); code != http.StatusForbidden {
			t.Errorf("%s has a label more: %d", path, code)
		}
	}
}

func TestKubeletReachesItsOwnOnly(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.namespace("shop")
	kubelet := c.certificate(c.ca, pki.Subject{CommonName: "system:node:n1", Organization: []string{"system:nodes"}, Client: true})
	nodes := kubelet.Resource(core.Nodes, "")
	c.must(nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil))
	if err := nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("registered another node: %v", err)
	}
	secrets := c.root().Resource(core.Secrets, "shop")
	for _, name := range []string{"key", "other"} {
		c.must(secrets.Create(t.Context(), &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
	}
	p := pod("web")
	p.Spec.NodeName = "n1"
	p.Spec.Volumes = []corev1.Volume{{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}}}
	c.serviceAccount("shop")
	c.created("shop", p)
	c.until("the pod's secret is the kubelet's", func(ctx context.Context) bool {
		return kubelet.Resource(core.Secrets, "shop").Get(ctx, "key", &core.Secret{}) == nil
	})
	if err := kubelet.Resource(core.Secrets, "shop").Get(t.Context(), "other", &core.Secret{}); !apierrors.IsForbidden(err) {
		t.Errorf("another secret: %v", err)
	}
	c.must(kubelet.Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}, rest.FieldSelector("spec.nodeName=n1")))
	if err := kubelet.Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("all pods: %v", err)
	}
}

// serviceAccount waits for a namespace's default service account, without
// which admission lets no pod in.
func (c *cluster) serviceAccount(namespace string) {
	c.t.Helper()
	c.until("default service account of "+namespace, func(ctx context.Context) bool {
		return c.root().Resource(core.ServiceAccounts, namespace).Get(ctx, "default", &core.ServiceAccount{}) == nil
	})
}

func TestServiceAccountToken(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.namespace("shop")
	c.serviceAccount("shop")
	request := func(audiences ...string) string {
		answer := &authenticationv1.TokenRequest{}
		path := core.ServiceAccounts.Path("shop", "default") + "/token"
		c.must(c.root().Do(t.Context(), http.MethodPost, path, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, answer))
		return answer.Status.Token
	}
	token := request()
	user, err := c.whoami(c.token(token))
	if err != nil || user.Username != "system:serviceaccount:shop:default" {
		t.Errorf("%+v %v", user, err)
	}
	if _, err := c.whoami(c.token(token[:len(token)-4] + "AAAA")); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong signature: %v", err)
	}
	if _, err := c.whoami(c.token(request("vault"))); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for another audience: %v", err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request("vault"), Audiences: []string{"vault"}}}
	c.must(c.root().Do(t.Context(), http.MethodPost, core.TokenReviews.Path("", ""), review, review))
	// A review is no table, and can be had as YAML.
	answers := &custom{c, t}
	answers.want(http.StatusNotAcceptable, "POST", core.TokenReviews.Path("", ""), review, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	if _, _, header := answers.call("POST", core.TokenReviews.Path("", ""), review, "Accept", "application/yaml"); header.Get("Content-Type") != "application/yaml" {
		t.Errorf("asked for as YAML, a review is %s", header.Get("Content-Type"))
	}
	if !review.Status.Authenticated || !slices.Equal(review.Status.Audiences, []string{"vault"}) || review.Status.User.Username != user.Username {
		t.Errorf("review: %+v", review.Status)
	}
	// A service account that is gone takes its tokens with it.
	fresh := request("other")
	c.must(c.root().Resource(core.ServiceAccounts, "shop").Delete(t.Context(), "default", nil, nil))
	c.until("the account's token is no longer good", func(ctx context.Context) bool {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: fresh, Audiences: []string{"other"}}}
		c.must(c.root().Do(ctx, http.MethodPost, core.TokenReviews.Path("", ""), review, review))
		return !review.Status.Authenticated && review.Status.Error != ""
	})
}

func TestAccessReviews(t *testing.T) {
	t.Parallel()
	c := start(t)
	ask := func(spec authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		c.must(c.root().Do(t.Context(), http.MethodPost, core.AccessReviews.Path("", ""), review, review))
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
	if status := ask(authorizationv1.SubjectAccessReviewSpec{User: "jane", Groups: []string{"system:authenticated"}, NonResourceAttributes: path}); !status.Allowed {
		t.Errorf("version: %+v", status)
	}
	err := c.root().Do(t.Context(), http.MethodPost, core.AccessReviews.Path("", ""), &authorizationv1.SubjectAccessReview{}, nil)
	if !apierrors.IsInvalid(err) {
		t.Errorf("a review of nobody: %v", err)
	}
	if err := c.token("nobody").Do(t.Context(), http.MethodPost, core.AccessReviews.Path("", ""), &authorizationv1.SubjectAccessReview{}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("jane asks about others: %v", err)
	}
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	c.must(c.token("nobody").Do(t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules, rules))
	if len(rules.Status.ResourceRules) == 0 || len(rules.Status.NonResourceRules) == 0 {
		t.Errorf("rules: %+v", rules.Status)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	t.Run("AlwaysAllow", func(t *testing.T) {
		c := start(t, func(o *config.Options) { o.AuthorizationModes = []string{config.ModeAlwaysAllow} })
		c.must(c.token("nobody").Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}))
	})
	t.Run("AlwaysDeny", func(t *testing.T) {
		c := start(t, func(o *config.Options) { o.AuthorizationModes = []string{config.ModeAlwaysDeny} })
		if err := c.token("nobody").Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
			t.Errorf("jane: %v", err)
		}
		c.must(c.root().Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}))
	})
}

// TestEveryPathAsksWhoYouAre walks the route table, so that no path is ever
// installed beside the chain.
func TestEveryPathAsksWhoYouAre(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.server.metrics = daemon.NewRegistry() // the running handler has its own
	handler, err := c.server.handler(c.address)
	c.must(err)
	router, ok := handler.(interface{ Routes() gin.RoutesInfo })
	if !ok {
		t.Fatalf("%T has no route table", handler)
	}
	routes := append(router.Routes(), gin.RouteInfo{Method: http.MethodGet, Path: "/nowhere"})
	if len(routes) < 100 {
		t.Fatalf("only %d routes", len(routes))
	}
	for _, route := range routes {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(route.Method, strings.ReplaceAll(route.Path, "*", "x"), nil))
		if open := slices.Contains(healthPaths, route.Path); w.Code == http.StatusUnauthorized == open {
			t.Errorf("%s %s: %d without a credential", route.Method, route.Path, w.Code)
		}
	}
}
