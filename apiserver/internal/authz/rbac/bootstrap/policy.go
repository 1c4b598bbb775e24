package bootstrap

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

//go:embed policy.txt
var policyText string

// policy is the content of policy.txt.
type policy struct {
	clusterRoles        []*rbacv1.ClusterRole
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
	roles               []*rbacv1.Role
	roleBindings        []*rbacv1.RoleBinding
	rules               *[]rbacv1.PolicyRule // of the role that is being read
}

const (
	clusterRoleKind   = "ClusterRole"
	roleKind          = "Role"
	controllerPrefix  = "system:controller:"
	aggregationPrefix = rbacv1.GroupName + "/aggregate-to-"
)

var (
	errUnknownWords    = errors.New("words that mean nothing here")
	errRuleWithoutRole = errors.New("a rule of no role")
)

// parse reads the format that policy.txt describes.
func parse(text string) (*policy, error) {
	p := &policy{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		read := p.parseHeader
		if strings.HasPrefix(line, " ") {
			read = p.parseRule
		}
		if err := read(words); err != nil {
			return nil, fmt.Errorf("bootstrap policy, line %d: %w", number, err)
		}
	}
	return p, nil
}

func (p *policy) parseHeader(words []string) error {
	if len(words) < 2 {
		return errUnknownWords
	}
	switch name := words[1]; words[0] {
	case "clusterrole":
		return p.parseClusterRole(name, words[2:])
	case "controller":
		account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: core.NamespaceSystem, Name: name}
		role := p.addClusterRole(controllerPrefix + name)
		p.bindClusterRole(role.Name, []rbacv1.Subject{account})
		return nil
	case "role":
		return p.parseRole(name, words[2:])
	}
	return errUnknownWords
}

func (p *policy) addClusterRole(name string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{ObjectMeta: meta("", name)}
	p.clusterRoles, p.rules = append(p.clusterRoles, role), &role.Rules
	return role
}

func (p *policy) bindClusterRole(name string, subjects []rbacv1.Subject) {
	p.clusterRoleBindings = append(p.clusterRoleBindings, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("", name), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: clusterRoleKind, Name: name},
	})
}

func (p *policy) parseClusterRole(name string, words []string) error {
	role := p.addClusterRole(name)
	if len(words) > 0 && words[0] == "to" {
		end := slices.IndexFunc(words, func(word string) bool { return word == "within" || word == "collects" })
		if end < 0 {
			end = len(words)
		}
		subjects, err := subjectsOf(words[1:end])
		if err != nil {
			return err
		}
		p.bindClusterRole(name, subjects)
		words = words[end:]
	}
	for ; len(words) >= 2; words = words[2:] {
		label := aggregationPrefix + words[1]
		switch words[0] {
		case "within":
			role.Labels[label] = "true"
		case "collects":
			labeled := metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}
			role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{labeled}}
		default:
			return errUnknownWords
		}
	}
	if len(words) > 0 {
		return errUnknownWords
	}
	return nil
}

func (p *policy) parseRole(place string, words []string) error {
	namespace, name, ok := strings.Cut(place, "/")
	binding := name
	if len(words) > 1 && words[0] == "as" {
		binding, words = words[1], words[2:]
	}
	if !ok || len(words) < 2 || words[0] != "to" {
		return errUnknownWords
	}
	subjects, err := subjectsOf(words[1:])
	if err != nil {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: meta(namespace, name)}
	p.roles, p.rules = append(p.roles, role), &role.Rules
	p.roleBindings = append(p.roleBindings, &rbacv1.RoleBinding{
		ObjectMeta: meta(namespace, binding), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: name},
	})
	return nil
}

func subjectsOf(words []string) ([]rbacv1.Subject, error) {
	if slices.Equal(words, []string{"nobody"}) {
		return nil, nil
	}
	var subjects []rbacv1.Subject
	for _, word := range words {
		kind, name, _ := strings.Cut(word, ":")
		subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Name: name}
		switch kind {
		case "user":
			subject.Kind = rbacv1.UserKind
		case "group":
			subject.Kind = rbacv1.GroupKind
		case "serviceaccount":
			subject.Kind, subject.APIGroup = rbacv1.ServiceAccountKind, ""
			subject.Namespace, subject.Name, _ = strings.Cut(name, "/")
		}
		if subject.Kind == "" || subject.Name == "" {
			return nil, fmt.Errorf("%q is not a subject", word)
		}
		subjects = append(subjects, subject)
	}
	return subjects, nil
}

// verbGroups are abbreviations for several verbs.
var verbGroups = map[string][]string{
	"read":      {"get", "list", "watch"},
	"write":     {"create", "delete", "deletecollection", "patch", "update"},
	"readwrite": {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
}

func (p *policy) parseRule(words []string) error {
	if p.rules == nil {
		return errRuleWithoutRole
	}
	if len(words) < 3 || len(words) > 4 {
		return errUnknownWords
	}
	rule := rbacv1.PolicyRule{Verbs: verbGroups[words[0]]}
	if rule.Verbs == nil {
		rule.Verbs = strings.Split(words[0], ",")
	}
	if words[1] == "url" {
		rule.NonResourceURLs = strings.Split(words[2], ",")
	} else {
		rule.APIGroups, rule.Resources = strings.Split(words[1], ","), strings.Split(words[2], ",")
		for i, group := range rule.APIGroups {
			if group == "core" {
				rule.APIGroups[i] = ""
			}
		}
	}
	if len(words) == 4 {
		rule.ResourceNames = strings.Split(words[3], ",")
	}
	*p.rules = append(*p.rules, rule)
	return nil
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}
