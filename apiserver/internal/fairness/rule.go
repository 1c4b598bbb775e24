package fairness

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"kctl/apiserver/internal/request"
)

// words are the values that a rule lists.
type words struct {
	all  bool
	few  []string
	many map[string]bool // instead of few, if there are many
}

// fewWords are found faster by looking at each than by hashing.
const fewWords = 8

func newWords(values []string) words {
	w := words{all: slices.Contains(values, "*")}
	if len(values) <= fewWords {
		w.few = values
		return w
	}
	w.many = make(map[string]bool, len(values))
	for _, v := range values {
		w.many[v] = true
	}
	return w
}

func (w *words) has(value string) bool {
	return w.all || slices.Contains(w.few, value) || w.many[value]
}

// rule is a flow schema's rule, in the form in which requests are matched.
type rule struct {
	users, groups words
	accounts      []string // user name prefixes that stand for all accounts of a namespace
	resources     []resourceRule
	paths         []pathRule
}

type resourceRule struct {
	verbs, groups, resources, namespaces words
	cluster                              bool
}

type pathRule struct {
	verbs, paths words
	below        []string // prefixes: "/healthz/"
}

const accountPrefix = "system:serviceaccount:"

func compile(r *flowcontrolv1.PolicyRulesWithSubjects) rule {
	var out rule
	var users, groups []string
	for _, s := range r.Subjects {
		switch {
		case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
			users = append(users, s.User.Name)
		case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
			groups = append(groups, s.Group.Name)
		case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil && s.ServiceAccount.Name == "*":
			out.accounts = append(out.accounts, accountPrefix+s.ServiceAccount.Namespace+":")
		case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
			users = append(users, accountPrefix+s.ServiceAccount.Namespace+":"+s.ServiceAccount.Name)
		}
	}
	out.users, out.groups = newWords(users), newWords(groups)
	for i := range r.ResourceRules {
		from := &r.ResourceRules[i]
		out.resources = append(out.resources, resourceRule{
			verbs: newWords(from.Verbs), groups: newWords(from.APIGroups), resources: newWords(from.Resources),
			namespaces: newWords(from.Namespaces), cluster: from.ClusterScope,
		})
	}
	for i := range r.NonResourceRules {
		from := &r.NonResourceRules[i]
		to := pathRule{verbs: newWords(from.Verbs), paths: newWords(from.NonResourceURLs)}
		for _, url := range from.NonResourceURLs {
			if prefix, ok := strings.CutSuffix(url, "/*"); ok {
				to.below = append(to.below, prefix+"/")
			}
		}
		out.paths = append(out.paths, to)
	}
	return out
}

func (r *rule) matches(user *request.User, info *request.Info) bool {
	return r.isAbout(user) && r.covers(info)
}

func (r *rule) isAbout(user *request.User) bool {
	if r.users.has(user.Username) || r.groups.all {
		return true
	}
	if slices.ContainsFunc(user.Groups, r.groups.has) {
		return true
	}
	for _, prefix := range r.accounts {
		if strings.HasPrefix(user.Username, prefix) {
			return true
		}
	}
	return false
}

func (r *rule) covers(info *request.Info) bool {
	if !info.Resource {
		for i := range r.paths {
			if r.paths[i].covers(info) {
				return true
			}
		}
		return false
	}
	for i := range r.resources {
		if r.resources[i].covers(info) {
			return true
		}
	}
	return false
}

func (r *pathRule) covers(info *request.Info) bool {
	if !r.verbs.has(info.Verb) {
		return false
	}
	return r.paths.has(info.Path) || slices.ContainsFunc(r.below, func(prefix string) bool { return strings.HasPrefix(info.Path, prefix) })
}

func (r *resourceRule) covers(info *request.Info) bool {
	if info.Namespace == "" {
		if !r.cluster {
			return false
		}
	} else if !r.namespaces.has(info.Namespace) {
		return false
	}
	return r.verbs.has(info.Verb) && r.groups.has(info.APIGroup) && r.coversResource(info)
}

func (r *resourceRule) coversResource(info *request.Info) bool {
	if r.resources.all {
		return true
	}
	if info.Subresource == "" {
		return r.resources.has(info.ResourceName)
	}
	return r.resources.has(info.ResourceName + "/" + info.Subresource)
}
