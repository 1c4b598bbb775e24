package claimstatus

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// rights are a user's permissions: "verb subresource namespace/name".
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.ResourceName == "resourceclaims" && a.APIGroup == resourcev1.GroupName && r[a.Verb+" "+a.Subresource+" "+a.Namespace+"/"+a.Name] {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func TestWhoMaySay(t *testing.T) {
	const binding, driver = "requires resource=\"resourceclaims/binding\", verb=\"update\"", "changing status.devices requires resource=\"resourceclaims/driver\""
	claim := func(change ...func(*resourcev1.ResourceClaimStatus)) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{}
		for _, by := range change {
			by(&c.Status)
		}
		return c
	}
	allocated := func(s *resourcev1.ResourceClaimStatus) {
		s.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}},
		}}}}
	}
	reserved := func(s *resourcev1.ResourceClaimStatus) {
		s.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Name: "p"}}
	}
	told := func(s *resourcev1.ResourceClaimStatus) {
		s.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "a.b"}, {Driver: "c.d"}}
	}
	binds := rights{"update binding /": true}
	somebody := &request.User{Username: "alice"}
	plugin := &request.User{Username: core.ServiceAccountPrefix + "default:plugin", Extra: map[string]authenticationv1.ExtraValue{authn.ExtraNodeName: {"n"}}}
	elsewhere := &request.User{Username: plugin.Username, Extra: map[string]authenticationv1.ExtraValue{authn.ExtraNodeName: {"m"}}}
	ofNode := rights{"associated-node:update driver default/a.b": true, "associated-node:update driver default/c.d": true}
	for name, test := range map[string]struct {
		may      rights
		user     *request.User
		old, now *resourcev1.ResourceClaim
		want     string
	}{
		"nothing is new":      {nil, somebody, claim(allocated), claim(allocated), ""},
		"allocated by nobody": {nil, somebody, claim(), claim(allocated), "changing status.allocation or status.reservedFor " + binding},
		"reserved by nobody":  {nil, somebody, claim(allocated), claim(allocated, reserved), binding},
		"allocated":           {binds, somebody, claim(), claim(allocated, reserved), ""},
		"given back":          {binds, somebody, claim(allocated, told), claim(), ""},
		"told by nobody":      {binds, somebody, claim(allocated), claim(allocated, told), driver + ", verb=\"[arbitrary-node:update]\""},
		"told of one driver": {rights{"arbitrary-node:update driver default/a.b": true}, somebody, claim(allocated), claim(allocated, told),
			`resource "resourceclaims/driver"`},
		"told": {rights{"arbitrary-node:update driver default/a.b": true, "arbitrary-node:update driver default/c.d": true}, somebody,
			claim(allocated), claim(allocated, told), ""},
		"no longer told":           {nil, somebody, claim(allocated, told), claim(allocated), driver},
		"told from the node":       {ofNode, plugin, claim(allocated), claim(allocated, told), ""},
		"told from elsewhere":      {ofNode, elsewhere, claim(allocated), claim(allocated, told), driver + ", verb=\"[arbitrary-node:update]\""},
		"told from the node, by x": {nil, plugin, claim(allocated), claim(allocated, told), driver + ", verb=\"[associated-node:update arbitrary-node:update]\""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := request.With(t.Context(), &request.Arrival{Info: &request.Info{Verb: "update"}})
			err := Plugin{test.may}.Validate(ctx, &admission.Attributes{
				Operation: admission.Update, Subresource: "status", Namespace: "default", Name: "c", User: test.user, Object: test.now, OldObject: test.old,
			})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
