package match

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

var deployments = core.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true}

// older is the form of the only equivalent resource in these tests.
type older struct{}

func (older) Equivalent(r core.Resource) []core.Resource {
	if r.Name != "deployments" {
		return nil
	}
	r.Version = "v1beta1"
	return []core.Resource{r}
}

func (older) Convert(_ context.Context, obj core.Object, _ core.Resource) (core.Object, error) {
	return obj, nil
}

func cluster() Cluster {
	return Cluster{Versions: older{}, Namespace: func(_ context.Context, name string) (*core.Namespace, error) {
		if name == "gone" {
			return nil, apierrors.NewNotFound(core.Namespaces.GVR().GroupResource(), name)
		}
		return &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}}, nil
	}}
}

func on(r core.Resource, subresource string, operation admission.Operation) *admission.Attributes {
	a := &admission.Attributes{Operation: operation, Resource: r, Subresource: subresource, Name: "web"}
	if r.Namespaced {
		a.Namespace = "shop"
	}
	return a
}

func labelled(a *admission.Attributes, now, before map[string]string) *admission.Attributes {
	if now != nil {
		a.Object = &core.Pod{ObjectMeta: metav1.ObjectMeta{Labels: now}}
	}
	if before != nil {
		a.OldObject = &core.Pod{ObjectMeta: metav1.ObjectMeta{Labels: before}}
	}
	return a
}

func TestMatch(t *testing.T) {
	const pods = `resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]`
	rule := func(resources string) string {
		return `resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: [` + resources + `]}]`
	}
	app := map[string]string{"app": "web"}
	for name, c := range map[string]struct {
		criteria string
		a        *admission.Attributes
		want     string // the version as which it matches; "" if it does not
	}{
		"create":                   {pods, on(core.Pods, "", admission.Create), "v1"},
		"another operation":        {pods, on(core.Pods, "", admission.Delete), ""},
		"a subresource":            {pods, on(core.Pods, "status", admission.Update), ""},
		"another resource":         {pods, on(core.ConfigMaps, "", admission.Create), ""},
		"another group":            {pods, on(core.Leases, "", admission.Create), ""},
		"everything":               {"{}", on(core.Leases, "", admission.Delete), "v1"},
		"star":                     {rule(`"*"`), on(core.Pods, "", admission.Connect), "v1"},
		"star is no subresource":   {rule(`"*"`), on(core.Pods, "exec", admission.Connect), ""},
		"star slash star":          {rule(`"*/*"`), on(core.Pods, "exec", admission.Connect), "v1"},
		"star slash star, no part": {rule(`"*/*"`), on(core.Pods, "", admission.Create), "v1"},
		"parts":                    {rule(`"pods/*"`), on(core.Pods, "exec", admission.Connect), "v1"},
		"part of any":              {rule(`"*/exec"`), on(core.Pods, "exec", admission.Connect), "v1"},
		"another part of any":      {rule(`"*/log"`), on(core.Pods, "exec", admission.Connect), ""},
		"named": {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods], resourceNames: [web]}]`,
			on(core.Pods, "", admission.Create), "v1"},
		"named otherwise": {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods], resourceNames: [x]}]`,
			on(core.Pods, "", admission.Create), ""},
		"cluster scope": {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: ["*"], scope: Cluster}]`,
			on(core.Namespaces, "", admission.Create), "v1"},
		"cluster scope, in one": {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: ["*"], scope: Cluster}]`,
			on(core.Pods, "", admission.Create), ""},
		"namespaced scope": {`resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: ["*"], scope: Namespaced}]`,
			on(core.Nodes, "", admission.Create), ""},
		"excepted": {rule(`"*"`) + "\nexcludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: [pods]}]",
			on(core.Pods, "", admission.Create), ""},
		"not excepted": {rule(`"*"`) + "\nexcludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: [pods]}]",
			on(core.Pods, "", admission.Delete), "v1"},
		"equivalent": {`resourceRules: [{apiGroups: [apps], apiVersions: [v1beta1], operations: ["*"], resources: [deployments]}]`,
			on(deployments, "", admission.Create), "v1beta1"},
		"exact": {`{matchPolicy: Exact, resourceRules: [{apiGroups: [apps], apiVersions: [v1beta1], operations: ["*"], resources: [deployments]}]}`,
			on(deployments, "", admission.Create), ""},
		"excepted by equivalent": {`{resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments]}], excludeResourceRules: [{apiGroups: [apps], apiVersions: [v1beta1], operations: ["*"], resources: [deployments]}]}`, on(deployments, "", admission.Create), ""},
		"object's labels":        {"objectSelector: {matchLabels: {app: web}}", labelled(on(core.Pods, "", admission.Update), app, map[string]string{}), "v1"},
		"old object's labels":    {"objectSelector: {matchLabels: {app: web}}", labelled(on(core.Pods, "", admission.Update), map[string]string{}, app), "v1"},
		"neither's labels": {"objectSelector: {matchLabels: {app: web}}",
			labelled(on(core.Pods, "", admission.Update), map[string]string{}, map[string]string{}), ""},
		"no object":                 {"objectSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}", on(core.Pods, "exec", admission.Connect), ""},
		"namespace":                 {"namespaceSelector: {matchLabels: {team: shop}}", on(core.Pods, "", admission.Create), "v1"},
		"another namespace":         {"namespaceSelector: {matchLabels: {team: x}}", on(core.Pods, "", admission.Create), ""},
		"no namespace":              {"namespaceSelector: {matchLabels: {team: x}}", on(core.Nodes, "", admission.Create), "v1"},
		"the namespace itself":      {"namespaceSelector: {matchLabels: {app: web}}", labelled(on(core.Namespaces, "", admission.Create), app, nil), "v1"},
		"the namespace itself, not": {"namespaceSelector: {matchLabels: {app: x}}", labelled(on(core.Namespaces, "", admission.Create), app, nil), ""},
		"the namespace that goes":   {"namespaceSelector: {matchLabels: {app: web}}", labelled(on(core.Namespaces, "", admission.Delete), nil, app), "v1"},
		"the namespace's end": {"namespaceSelector: {matchLabels: {team: web}}", labelled(on(core.Namespaces, "finalize", admission.Update), app, app),
			"v1"},
		"a question about a user": {rule(`"*"`), on(core.Resource{
			Group: "authorization.k8s.io", Version: "v1", Name: "subjectaccessreviews", Kind: "SubjectAccessReview",
		}, "", admission.Create), ""},
		"a question about a token": {"{}", on(core.TokenReviews, "", admission.Create), ""},
		"namespace not asked for": {rule("nodes") + "\nnamespaceSelector: {matchLabels: {team: x}}",
			&admission.Attributes{Resource: core.Pods, Namespace: "gone"}, ""},
		"everything but an empty name": {"namespaceSelector: {}", &admission.Attributes{Resource: core.Pods, Namespace: "gone"}, "v1"},
	} {
		var r admissionregistrationv1.MatchResources
		if err := yaml.UnmarshalStrict([]byte(c.criteria), &r); err != nil {
			t.Fatal(name, err)
		}
		criteria, err := Of(&r)
		if err != nil {
			t.Fatal(name, err)
		}
		target, ok, err := criteria.Match(t.Context(), c.a, cluster())
		if err != nil || ok != (c.want != "") || target.Version != c.want || target.Converted != (c.want == "v1beta1") {
			t.Errorf("%s: %+v %v %v", name, target, ok, err)
		}
	}
}

func TestMatchAsksForTheNamespace(t *testing.T) {
	criteria, err := Of(&admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := criteria.Match(t.Context(), &admission.Attributes{Resource: core.Pods, Namespace: "gone"}, cluster()); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace that is not there: %v", err)
	}
	hook, err := OfHook(nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := hook.Match(t.Context(), on(core.Pods, "", admission.Create), cluster()); ok {
		t.Error("a webhook without rules is asked")
	}
	if _, err := Of(&admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}); err == nil {
		t.Error("a selector that can't be read is taken")
	}
}
