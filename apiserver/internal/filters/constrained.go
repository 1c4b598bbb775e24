package filters

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// constraint is one way of impersonation that is limited to certain actions
// (Kubernetes docs, "User Impersonation", constrained impersonation; KEP-5284).
type constraint struct {
	verb string
	// who acts, as authorizers see them.
	who *request.User
	// asks are the rights to act as this user, besides the right to do so for this action.
	asks []request.Info
	// groups are those that the user has by identity.
	groups []string
}

// extraAssociatedNodeKeys replaces the extra values of an account that acts as its pod's node: the
// account matters, not the pod.
const extraAssociatedNodeKeys = "authentication.kubernetes.io/associated-node-keys"

// constraintsOf are the ways in which who may act as wanted, the narrowest first.
// Nodes and service accounts are fully described by their names.
func constraintsOf(who, wanted *request.User) []constraint {
	bare := len(wanted.Groups) == 0 && wanted.UID == "" && len(wanted.Extra) == 0
	if node, ok := strings.CutPrefix(wanted.Username, core.UserNodePrefix); ok && node != "" {
		if !bare {
			return nil
		}
		return asNode(who, node)
	}
	if namespace, name, ok := serviceAccountOf(wanted.Username); ok {
		if !bare {
			return nil
		}
		const verb = "impersonate:serviceaccount"
		return []constraint{{verb: verb, who: who, asks: []request.Info{asking(verb, core.ServiceAccounts.Name, namespace, name)}}}
	}
	const verb = "impersonate:user-info"
	return []constraint{{verb: verb, who: who, asks: impersonations(wanted, func(resource, subresource, name string) request.Info {
		info := asking(verb, resource, "", name)
		info.Subresource = subresource
		return info
	})}}
}

func asNode(who *request.User, node string) (ways []constraint) {
	groups := []string{core.GroupNodes}
	if _, _, ok := serviceAccountOf(who.Username); ok && slices.Equal(who.Extra[authn.ExtraNodeName], []string{node}) {
		const verb = "impersonate:associated-node"
		account := *who
		account.Extra = map[string]authenticationv1.ExtraValue{extraAssociatedNodeKeys: slices.Sorted(maps.Keys(who.Extra))}
		ways = append(ways, constraint{verb: verb, who: &account, asks: []request.Info{asking(verb, core.Nodes.Name, "", "*")}, groups: groups})
	}
	const verb = "impersonate:arbitrary-node"
	return append(ways, constraint{verb: verb, who: who, asks: []request.Info{asking(verb, core.Nodes.Name, "", node)}, groups: groups})
}

func asking(verb, resource, namespace, name string) request.Info {
	return request.Info{
		Resource: true, Verb: verb, APIGroup: authenticationv1.GroupName, APIVersion: "v1",
		ResourceName: resource, Namespace: namespace, Name: name,
	}
}

// on is the right to impersonate for the action of a request.
func (c constraint) on(asked *authz.Attributes) request.Info {
	info := asked.Info
	info.Verb = strings.Replace(c.verb, "impersonate:", "impersonate-on:", 1) + ":" + info.Verb
	return info
}

// never is why no user may have a right, whatever the rules; "" if the rules
// decide.
func never(ask request.Info) (at request.Info, reason string) {
	switch {
	case ask.ResourceName == "groups" && ask.Name == core.GroupMasters:
		return ask, fmt.Sprintf("impersonating the %s group is not allowed", core.GroupMasters)
	case ask.ResourceName == "userextras":
		if errs := validation.IsDomainPrefixedPath(field.NewPath("extra").Key("key"), ask.Subresource); len(errs) > 0 {
			errs[0].Field = "extra.key"
			ask.Subresource, ask.Name = "", ""
			return ask, "impersonating an invalid key in extra is not allowed: " + errs[0].Error()
		}
	}
	return ask, ""
}
