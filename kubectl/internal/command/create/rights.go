package create

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// ruleFlags is the flags of create role and clusterrole.
type ruleFlags struct {
	*frame.CLI
	verbs, resources, names, urls []string
}

func (g *ruleFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&g.verbs, "verb", nil, "Verb that applies to the resources contained in the rule")
	fs.StringSliceVar(&g.resources, "resource", nil, "Resource that the rule applies to")
	fs.StringArrayVar(&g.names, "resource-name", nil,
		"Resource in the white list that the rule applies to, repeat this flag for multiple items")
}

// rules are one for each API group, in the order in which they were named.
func (g *ruleFlags) rules(ctx context.Context) ([]rbacv1.PolicyRule, error) {
	if len(g.verbs) == 0 {
		return nil, errors.New("at least one verb must be specified")
	}
	if len(g.resources) == 0 && len(g.urls) == 0 {
		return nil, errors.New("one of resource or nonResourceURL must be specified")
	}
	if len(g.names) > 0 && len(g.resources) == 0 {
		return nil, errors.New("at least one resource must be specified")
	}
	verbs, err := g.uniqueVerbs()
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, name := range g.resources {
		group, resource, err := g.parseResource(ctx, name)
		if err == nil {
			err = checkSpecialVerbs(verbs, group, resource)
		}
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == group })
		if at < 0 {
			rules = append(rules, rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, ResourceNames: g.names})
			at = len(rules) - 1
		}
		if !slices.Contains(rules[at].Resources, resource) {
			rules[at].Resources = append(rules[at].Resources, resource)
		}
	}
	if len(g.urls) > 0 {
		rules = append(rules, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: g.urls})
	}
	return rules, nil
}

// uniqueVerbs are the verbs, each once, or all.
func (g *ruleFlags) uniqueVerbs() ([]string, error) {
	for _, url := range g.urls {
		if url != "*" && !strings.HasPrefix(url, "/") {
			return nil, errors.New("nonResourceURL should start with /")
		}
	}
	var verbs []string
	for _, verb := range g.verbs {
		if verb == "*" {
			return []string{"*"}, nil
		}
		if slices.Contains(verbs, verb) {
			continue
		}
		verbs = append(verbs, verb)
		if len(g.urls) > 0 && !slices.Contains(urlVerbs, verb) {
			return nil, fmt.Errorf("invalid verb: '%s' for nonResourceURL", verb)
		}
		if len(g.resources) > 0 && !slices.Contains(resourceVerbs, verb) {
			g.Warn("'%s' is not a standard resource verb", verb)
		}
	}
	return verbs, nil
}

// The verbs that there are for resources and for URLs.
var (
	resourceVerbs = []string{"get", "delete", "list", "create", "update", "patch", "watch", "proxy", "deletecollection", "use", "bind",
		"escalate", "impersonate"}
	urlVerbs = []string{"get", "post", "put", "delete", "patch", "head", "options"}
)

// specialVerbs have a meaning only for a few resources, here by group.
var specialVerbs = map[string]map[string][]string{
	"use":         {"policy": {"podsecuritypolicies"}, "extensions": {"podsecuritypolicies"}},
	"bind":        {"rbac.authorization.k8s.io": {"roles", "clusterroles"}},
	"escalate":    {"rbac.authorization.k8s.io": {"roles", "clusterroles"}},
	"impersonate": {"": {"users", "serviceaccounts", "groups"}, "authentication.k8s.io": {"userextras", "uids"}},
}

// checkSpecialVerbs rejects special verbs that a resource does not have.
func checkSpecialVerbs(verbs []string, group, resource string) error {
	resource, _, _ = strings.Cut(resource, "/")
	for _, verb := range verbs {
		if only, ok := specialVerbs[verb]; ok && resource != "*" && !slices.Contains(only[group], resource) {
			return fmt.Errorf("can not perform '%s' on '%s' in group '%s'", verb, resource, group)
		}
	}
	return nil
}

// impersonated are the virtual resources for which "impersonate" is granted; no
// server serves them (Kubernetes docs, "User impersonation").
var impersonated = map[string]string{
	"users": "", "groups": "",
	"userextras.authentication.k8s.io": "authentication.k8s.io", "uids.authentication.k8s.io": "authentication.k8s.io",
}

// parseResource reads TYPE[.GROUP][/SUBRESOURCE].
func (g *ruleFlags) parseResource(ctx context.Context, name string) (group, resource string, err error) {
	kind, sub, hasSub := strings.Cut(name, "/")
	if group, ok := strings.CutPrefix(kind, "*"); ok && (group == "" || group[0] == '.') {
		return strings.TrimPrefix(group, "."), "*" + name[len(kind):], nil
	}
	if group, ok := impersonated[kind]; ok && slices.Contains(g.verbs, "impersonate") {
		return group, strings.TrimSuffix(kind, "."+group) + name[len(kind):], nil
	}
	discovery, err := g.Discovery()
	if err != nil {
		return "", "", err
	}
	found, err := discovery.Named(ctx, kind)
	if err != nil {
		return "", "", frame.NoResource(err)
	}
	if hasSub {
		return found.Group, found.Name + "/" + sub, nil
	}
	return found.Group, found.Name, nil
}

func newCreateRole(c *frame.CLI) *cobra.Command {
	g := &ruleFlags{CLI: c}
	var cmd *cobra.Command
	cmd = generator(c, "role NAME --verb=verb --resource=resource.group/subresource", "Create a role with single rule", core.Roles,
		func(name string, _ []string) (core.Object, error) {
			if len(g.verbs) > 0 && len(g.resources) == 0 {
				return nil, errors.New("at least one resource must be specified")
			}
			rules, err := g.rules(cmd.Context())
			return generate.Role(name, rules), err
		})
	g.add(cmd)
	return cmd
}

func newCreateClusterRole(c *frame.CLI) *cobra.Command {
	g := &ruleFlags{CLI: c}
	aggregate := map[string]string{}
	var cmd *cobra.Command
	cmd = generator(c, "clusterrole NAME --verb=verb --resource=resource.group", "Create a cluster role", core.ClusterRoles,
		func(name string, _ []string) (core.Object, error) {
			if len(aggregate) > 0 {
				if len(g.verbs)+len(g.resources)+len(g.urls)+len(g.names) > 0 {
					return nil, errors.New("aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames")
				}
				return generate.ClusterRole(name, nil, aggregate), nil
			}
			rules, err := g.rules(cmd.Context())
			return generate.ClusterRole(name, rules, nil), err
		})
	g.add(cmd)
	cmd.Flags().StringSliceVar(&g.urls, "non-resource-url", nil, "A partial url that user should have access to.")
	cmd.Flags().StringToStringVar(&aggregate, "aggregation-rule", nil, "An aggregation label selector for combining ClusterRoles.")
	return cmd
}

// subjectFlags are the flags for the subjects of bindings.
type subjectFlags struct{ users, groups, accounts []string }

func (s *subjectFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&s.users, "user", nil, "Usernames to bind to the role. The flag can be repeated to add multiple users.")
	fs.StringArrayVar(&s.groups, "group", nil, "Groups to bind to the role. The flag can be repeated to add multiple groups.")
	fs.StringArrayVar(&s.accounts, "serviceaccount", nil, "Service accounts to bind to the role, in the format <namespace>:<name>.")
}

func newCreateRoleBinding(c *frame.CLI) *cobra.Command {
	var who subjectFlags
	var role, clusterRole string
	cmd := generator(c, "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname]",
		"Create a role binding for a particular role or cluster role", core.RoleBindings,
		func(name string, _ []string) (core.Object, error) {
			all, err := generate.Subjects(who.users, who.groups, who.accounts)
			if err != nil {
				return nil, err
			}
			return generate.RoleBinding(name, role, clusterRole, all)
		})
	cmd.Flags().StringVar(&role, "role", "", "Role this RoleBinding should reference")
	cmd.Flags().StringVar(&clusterRole, "clusterrole", "", "ClusterRole this RoleBinding should reference")
	who.add(cmd)
	return cmd
}

func newCreateClusterRoleBinding(c *frame.CLI) *cobra.Command {
	var who subjectFlags
	var clusterRole string
	cmd := generator(c, "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname]",
		"Create a cluster role binding for a particular cluster role", core.ClusterRoleBindings,
		func(name string, _ []string) (core.Object, error) {
			all, err := generate.Subjects(who.users, who.groups, who.accounts)
			if err != nil {
				return nil, err
			}
			return generate.ClusterRoleBinding(name, clusterRole, all), nil
		})
	cmd.Flags().StringVar(&clusterRole, "clusterrole", "", "ClusterRole this ClusterRoleBinding should reference")
	_ = cmd.MarkFlagRequired("clusterrole")
	who.add(cmd)
	return cmd
}

func newCreateTLSSecret(c *frame.CLI) *cobra.Command {
	var certificate, key string
	var hash appendHash
	cmd := generator(c, "tls NAME --cert=path/to/cert/file --key=path/to/key/file", "Create a TLS secret", core.Secrets,
		func(name string, _ []string) (core.Object, error) {
			if certificate == "" || key == "" {
				return nil, errors.New("key and cert must be specified")
			}
			if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
				return nil, fmt.Errorf("failed to load key pair: %w", err)
			}
			certificatePEM, err := os.ReadFile(certificate)
			if err != nil {
				return nil, fmt.Errorf("reading the certificate: %w", err)
			}
			keyPEM, err := os.ReadFile(key)
			if err != nil {
				return nil, fmt.Errorf("reading the key: %w", err)
			}
			return hash.apply(generate.TLSSecret(name, certificatePEM, keyPEM))
		})
	hash.add(cmd.Flags(), "secret")
	cmd.Flags().StringVar(&certificate, "cert", "", "Path to PEM encoded public key certificate.")
	cmd.Flags().StringVar(&key, "key", "", "Path to private key associated with given certificate.")
	return cmd
}

func newCreateRegistrySecret(c *frame.CLI) *cobra.Command {
	var server, user, password, email string
	var hash appendHash
	var files []string
	cmd := generator(c, "docker-registry NAME --docker-username=user --docker-password=password --docker-email=email [--docker-server=string]",
		"Create a secret for use with a Docker registry", core.Secrets,
		func(name string, _ []string) (core.Object, error) {
			for i, file := range files {
				if !strings.Contains(file, "=") {
					files[i] = ".dockerconfigjson=" + file // the one key that such a secret has
				}
			}
			if len(files) > 0 {
				made, err := generate.Secret(name, "kubernetes.io/dockerconfigjson", generate.Data{Files: files})
				if err != nil {
					return nil, err
				}
				return hash.apply(made)
			}
			if user == "" || password == "" {
				return nil, errors.New("either --from-file or the combination of --docker-username, --docker-password and --docker-server is required")
			}
			made, err := generate.RegistrySecret(name, server, user, password, email)
			if err != nil {
				return nil, err
			}
			return hash.apply(made)
		})
	fs := cmd.Flags()
	hash.add(fs, "secret")
	fs.StringVar(&server, "docker-server", "https://index.docker.io/v1/", "Server location for Docker registry")
	fs.StringVar(&user, "docker-username", "", "Username for Docker registry authentication")
	fs.StringVar(&password, "docker-password", "", "Password for Docker registry authentication")
	fs.StringVar(&email, "docker-email", "", "Email for Docker registry")
	fs.StringSliceVar(&files, "from-file", nil, "Key files can be specified using their file path.")
	return cmd
}
