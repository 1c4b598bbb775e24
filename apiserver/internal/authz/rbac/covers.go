package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Uncovered returns those parts of wanted that no rule of owned allows, each
// cut down to one verb on one thing. Whoever grants rules has to own them.
func Uncovered(owned, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var missing []rbacv1.PolicyRule
	for _, rule := range wanted {
		for _, atom := range atoms(rule) {
			if !slices.ContainsFunc(owned, func(o rbacv1.PolicyRule) bool { return covers(o, atom) }) {
				missing = append(missing, atom)
			}
		}
	}
	return missing
}

// Compact joins rules about one thing, so that each is listed once with all of
// its verbs. What it is given has been cut down by Uncovered.
func Compact(atoms []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type thing struct{ group, resource, name string }
	var out []rbacv1.PolicyRule
	at := map[thing]int{}
	for _, atom := range atoms {
		if len(atom.Resources) == 0 {
			out = append(out, atom)
			continue
		}
		key := thing{group: atom.APIGroups[0], resource: atom.Resources[0]}
		if len(atom.ResourceNames) > 0 {
			key.name = atom.ResourceNames[0]
		}
		i, ok := at[key]
		if !ok {
			at[key] = len(out)
			out = append(out, atom)
			continue
		}
		if !slices.Contains(out[i].Verbs, atom.Verbs[0]) {
			out[i].Verbs = append(slices.Clip(out[i].Verbs), atom.Verbs[0])
		}
	}
	return out
}

// atoms cuts a rule into rules with one verb, one group, one resource and at
// most one name, or one verb and one URL.
func atoms(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				atom := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
				if len(rule.ResourceNames) == 0 {
					out = append(out, atom)
				}
				for _, name := range rule.ResourceNames {
					atom.ResourceNames = []string{name}
					out = append(out, atom)
				}
			}
		}
		for _, url := range rule.NonResourceURLs {
			out = append(out, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{url}})
		}
	}
	return out
}

func covers(owned, atom rbacv1.PolicyRule) bool {
	if !hasOrAll(owned.Verbs, atom.Verbs[0]) {
		return false
	}
	if len(atom.NonResourceURLs) > 0 {
		return slices.ContainsFunc(owned.NonResourceURLs, func(pattern string) bool { return urlCovers(pattern, atom.NonResourceURLs[0]) })
	}
	if !hasOrAll(owned.APIGroups, atom.APIGroups[0]) || !resourceCovers(owned.Resources, atom.Resources[0]) {
		return false
	}
	return len(owned.ResourceNames) == 0 ||
		len(atom.ResourceNames) == 1 && slices.Contains(owned.ResourceNames, atom.ResourceNames[0])
}

func resourceCovers(owned []string, resource string) bool {
	if hasOrAll(owned, resource) {
		return true
	}
	_, sub, found := strings.Cut(resource, "/")
	return found && slices.Contains(owned, "*/"+sub)
}

// urlCovers: "/a/*" covers "/a/b" and "/a/b/*".
func urlCovers(pattern, url string) bool {
	if pattern == url {
		return true
	}
	prefix, ok := strings.CutSuffix(pattern, "*")
	return ok && strings.HasPrefix(strings.TrimSuffix(url, "*"), prefix)
}
