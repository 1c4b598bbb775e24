package server

import (
	authnchain "kctl/apiserver/internal/authn/chain"
	"kctl/apiserver/internal/authz"
	authzchain "kctl/apiserver/internal/authz/chain"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/informer"
)

// newIdentities makes what finds out who sends a request.
func newIdentities(o *objects) (*authnchain.Authentication, error) {
	r := o.resources
	return authnchain.New(authnchain.Options{
		Flags: o.options, Metrics: o.metrics, Clock: o.clock, Logger: o.logger,
		Objects: authnchain.Objects{ServiceAccounts: r.ServiceAccounts, Pods: r.Pods, Secrets: r.Secrets, Nodes: r.Nodes, Logger: o.logger},
	})
}

// access says who sends a request, and whether they may.
type access struct {
	identities *authnchain.Authentication
	authorizer authz.Union
	roles      *rbac.Authorizer // of the mode RBAC
	rules      *rbac.Follower   // which keeps the roles in step with what is stored
	// pods are what the mode Node decides by. The relay's stamps, and the housekeeping
	// loops of the first term, use them too.
	pods  *informer.Informer[informer.Pod]
	files []*configfile.Follower
}

func newAccess(a *api, identities *authnchain.Authentication) (*access, error) {
	r, roles, pods := a.objects.resources, rbac.NewAuthorizer(), a.objects.newPods()
	rules := rbac.NewFollower(roles, rbac.Sources{
		Roles: r.Roles, RoleBindings: r.RoleBindings, ClusterRoles: r.ClusterRoles, ClusterRoleBindings: r.ClusterRoleBindings,
	}, a.clock, a.logger)
	authorizer, files, err := authzchain.New(authzchain.Options{
		Flags: a.options, Rules: roles, Pods: pods, PodsChanged: r.Pods.LastChangeRevision, Stored: r.Find, Ready: a.ready,
		Metrics: a.metrics, Clock: a.clock, Logger: a.logger,
	})
	if err != nil {
		return nil, err
	}
	return &access{
		identities: identities, authorizer: authorizer, roles: roles, rules: rules, pods: pods,
		files: append(identities.Files, files...),
	}, nil
}
