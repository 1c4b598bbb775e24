package audit

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/request"
)

// Policy is audit.k8s.io/v1 Policy: the first rule that matches a request says
// how much of it is kept; nothing is kept of a request that none matches.
type Policy struct {
	APIVersion        string  `json:"apiVersion"`
	Kind              string  `json:"kind"`
	Metadata          any     `json:"metadata,omitempty"`
	Rules             []Rule  `json:"rules"`
	OmitStages        []Stage `json:"omitStages,omitempty"`
	OmitManagedFields bool    `json:"omitManagedFields,omitempty"`
}

// Rule is one rule. One element of each of its lists has to match.
type Rule struct {
	Level             Level            `json:"level"`
	Users             []string         `json:"users,omitempty"`
	UserGroups        []string         `json:"userGroups,omitempty"`
	Verbs             []string         `json:"verbs,omitempty"`
	Resources         []GroupResources `json:"resources,omitempty"`
	Namespaces        []string         `json:"namespaces,omitempty"`
	NonResourceURLs   []string         `json:"nonResourceURLs,omitempty"`
	OmitStages        []Stage          `json:"omitStages,omitempty"`
	OmitManagedFields *bool            `json:"omitManagedFields,omitempty"`
}

// GroupResources are resources of one API group, or of anyGroup; none means all of them.
type GroupResources struct {
	Group         string   `json:"group,omitempty"`
	Resources     []string `json:"resources,omitempty"`
	ResourceNames []string `json:"resourceNames,omitempty"`
}

const anyGroup = "*"

// verdict is the policy's decision on one request.
type verdict struct {
	level             Level
	omit              []Stage
	omitManagedFields bool
}

// LoadPolicy reads a policy and checks it.
func LoadPolicy(file string) (*Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	p := &Policy{}
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, fmt.Errorf("audit policy %s: %w", file, err)
	}
	if p.APIVersion != apiVersion || p.Kind != "Policy" {
		return nil, fmt.Errorf("audit policy %s: is a %q of %q, only Policy of %s is known", file, p.Kind, p.APIVersion, apiVersion)
	}
	if len(p.Rules) == 0 {
		return nil, fmt.Errorf("audit policy %s: it has no rules", file)
	}
	if errs := p.validate(); len(errs) > 0 {
		return nil, fmt.Errorf("audit policy %s: %w", file, errs.ToAggregate())
	}
	return p, nil
}

func (p *Policy) validate() field.ErrorList {
	errs := validateStages(field.NewPath("omitStages"), p.OmitStages)
	rules := field.NewPath("rules")
	for i := range p.Rules {
		errs = append(errs, p.Rules[i].validate(rules.Index(i))...)
	}
	return errs
}

func (r *Rule) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if levels := []Level{None, Metadata, Request, RequestResponse}; !slices.Contains(levels, r.Level) {
		errs = append(errs, field.NotSupported(path.Child("level"), r.Level, levels))
	}
	errs = append(errs, validateStages(path.Child("omitStages"), r.OmitStages)...)
	if len(r.NonResourceURLs) > 0 && (len(r.Resources) > 0 || len(r.Namespaces) > 0) {
		errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), r.NonResourceURLs,
			"rules cannot apply to both regular resources and non-resource URLs"))
	}
	for i, url := range r.NonResourceURLs {
		at := path.Child("nonResourceURLs").Index(i)
		if url != "*" && !strings.HasPrefix(url, "/") {
			errs = append(errs, field.Invalid(at, url, "non-resource URL rules must begin with a '/' character"))
		}
		if url != "" && strings.Contains(url[:len(url)-1], "*") {
			errs = append(errs, field.Invalid(at, url, "non-resource URL wildcards '*' must be the final character of the rule"))
		}
	}
	for i, resources := range r.Resources {
		at := path.Child("resources").Index(i)
		if resources.Group != "" && resources.Group != anyGroup {
			for _, problem := range validation.IsDNS1123Subdomain(resources.Group) {
				errs = append(errs, field.Invalid(at.Child("group"), resources.Group, "must be the name of an API group, without a version: "+problem))
			}
		}
		if len(resources.ResourceNames) > 0 && len(resources.Resources) == 0 {
			errs = append(errs, field.Invalid(at.Child("resourceNames"), resources.ResourceNames,
				"using resourceNames requires at least one resource"))
		}
	}
	return errs
}

func validateStages(path *field.Path, stages []Stage) field.ErrorList {
	var errs field.ErrorList
	known := []Stage{RequestReceived, ResponseStarted, ResponseComplete, Panic}
	for i, stage := range stages {
		if !slices.Contains(known, stage) {
			errs = append(errs, field.NotSupported(path.Index(i), stage, known))
		}
	}
	return errs
}

// judge decides how much of a user's request is kept.
func (p *Policy) judge(user *request.User, info *request.Info) verdict {
	for i := range p.Rules {
		rule := &p.Rules[i]
		if !rule.matches(user, info) {
			continue
		}
		v := verdict{level: rule.Level, omitManagedFields: p.OmitManagedFields, omit: p.OmitStages}
		if len(rule.OmitStages) > 0 {
			v.omit = slices.Concat(p.OmitStages, rule.OmitStages)
		}
		if rule.OmitManagedFields != nil {
			v.omitManagedFields = *rule.OmitManagedFields
		}
		return v
	}
	return verdict{level: None}
}

func (r *Rule) matches(user *request.User, info *request.Info) bool {
	if len(r.Users) > 0 && (user == nil || !slices.Contains(r.Users, user.Username)) {
		return false
	}
	listed := func(group string) bool { return slices.Contains(r.UserGroups, group) }
	if len(r.UserGroups) > 0 && (user == nil || !slices.ContainsFunc(user.Groups, listed)) {
		return false
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, info.Verb) {
		return false
	}
	switch {
	case len(r.Namespaces) > 0 || len(r.Resources) > 0:
		return info.Resource && r.matchesResource(info)
	case len(r.NonResourceURLs) > 0:
		return !info.Resource && slices.ContainsFunc(r.NonResourceURLs,
			func(pattern string) bool { return request.PathMatches(pattern, info.Path) })
	}
	return true
}

func (r *Rule) matchesResource(info *request.Info) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, info.Namespace) {
		return false
	}
	if len(r.Resources) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Resources, func(g GroupResources) bool { return g.matches(info) })
}

func (g GroupResources) matches(info *request.Info) bool {
	if g.Group != anyGroup && g.Group != info.APIGroup {
		return false
	}
	if len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, info.Name) {
		return false
	}
	if len(g.Resources) == 0 {
		return true
	}
	whole := info.ResourceName
	if info.Subresource != "" {
		whole += "/" + info.Subresource
	}
	return slices.ContainsFunc(g.Resources, func(pattern string) bool {
		if pattern == "*" || pattern == whole {
			return true
		}
		resource, subresource, _ := strings.Cut(pattern, "/")
		return resource == "*" && info.Subresource != "" && subresource == info.Subresource ||
			subresource == "*" && resource == info.ResourceName // with or without a subresource, as in upstream
	})
}
