package openapi

import (
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	release "k8s.io/apimachinery/pkg/version"
)

// describeDiscovery adds the paths by which clients find out what the server is, and
// what it serves. Those that don't belong to a group's version have a v3 document each.
func (m *model) describeDiscovery() {
	described := map[string]bool{"": true} // the core group has no document of its own: it is under /api
	for _, g := range m.groups {
		name := groupName(g.version.Group)
		id := "get" + title(name) + title(g.version.Version) + "APIResources"
		g.addRoot(id, "get available resources", m.meta(metav1.APIResourceList{}), objectTypes)
		if !described[g.version.Group] {
			described[g.version.Group] = true
			group := m.newGroup("apis/"+g.version.Group, name)
			group.addRoot("get"+title(name)+"APIGroup", "get information of a group", m.meta(metav1.APIGroup{}), objectTypes)
		}
	}
	const versions = "get available API versions"
	m.newGroup("api", "core").addRoot("getCoreAPIVersions", versions, m.meta(metav1.APIVersions{}), objectTypes)
	m.newGroup("apis", "apis").addRoot("getAPIVersions", versions, m.meta(metav1.APIGroupList{}), objectTypes)
	info := &schema{ref: m.definitions.define(reflect.TypeFor[release.Info]())}
	m.newGroup("version", "version").addRoot("getCodeVersion", "get the version information for this server", info, []string{jsonType})
	m.newGroup(".well-known/openid-configuration", "WellKnown").addRoot("getServiceAccountIssuerOpenIDConfiguration",
		"get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", &schema{kind: "string"}, []string{jsonType})
	m.newGroup("openid/v1/jwks", "openid").addRoot("getServiceAccountIssuerOpenIDKeyset",
		"get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", &schema{kind: "string"},
		[]string{"application/jwk-set+json"})
}

// meta is the schema of a discovery document's type.
func (m *model) meta(object any) *schema {
	t := reflect.TypeOf(object)
	name := m.definitions.define(t)
	m.definitions.addKind(name, metav1.Unversioned.WithKind(t.Name()))
	return &schema{ref: name}
}

// addRoot adds the path that everything else in the document is below.
func (g *group) addRoot(id, description string, answer *schema, types []string) {
	op := operation{method: http.MethodGet, id: id, description: description, produces: types, answer: answer, codes: []int{http.StatusOK}}
	if answer.ref != "" { // what is not a type of the API is not negotiated
		op.consumes = types
	}
	g.paths["/"+g.document+"/"] = []operation{op}
}
