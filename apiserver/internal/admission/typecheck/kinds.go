package typecheck

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// maxKinds is how many types of one rule are checked; upstream's.
const maxKinds = 10

// checker reads each document once.
type checker struct {
	documents Documents
	read      map[schema.GroupVersion]*document
}

// selectedKinds are the types of the resources that rules name, in order. Rules with a wildcard
// may mean any; subresources have other types.
func (c *checker) selectedKinds(match *admissionregistrationv1.MatchResources) ([]schema.GroupVersionKind, error) {
	if match == nil {
		return nil, nil
	}
	var kinds []schema.GroupVersionKind
	for i := range match.ResourceRules {
		found, err := c.kindsOf(&match.ResourceRules[i].Rule)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, found...)
		if len(found) == maxKinds {
			break
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(kinds), nil
}

func (c *checker) kindsOf(rule *admissionregistrationv1.Rule) ([]schema.GroupVersionKind, error) {
	if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIVersions, "*") {
		return nil, nil
	}
	var kinds []schema.GroupVersionKind
	for _, group := range slices.Sorted(slices.Values(rule.APIGroups)) {
		for _, version := range slices.Sorted(slices.Values(rule.APIVersions)) {
			d, err := c.document(schema.GroupVersion{Group: group, Version: version})
			if err != nil {
				return nil, err
			}
			for _, resource := range slices.Sorted(slices.Values(rule.Resources)) {
				if strings.ContainsAny(resource, "*/") {
					continue
				}
				if kind, ok := d.kindOf(resource); ok && len(kinds) < maxKinds {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	return kinds, nil
}

// document is that of a group's version; an empty one if there is none.
func (c *checker) document(gv schema.GroupVersion) (*document, error) {
	if d, ok := c.read[gv]; ok {
		return d, nil
	}
	d := &document{}
	text, ok, err := c.documents(gv)
	if err == nil && ok {
		d, err = readDocument(gv, text)
	}
	if err != nil {
		return nil, err
	}
	c.read[gv] = d
	return d, nil
}

func (c *checker) typeOf(kind schema.GroupVersionKind, name string) (*apiservercel.DeclType, error) {
	d, err := c.document(kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	return d.typeOf(kind, name), nil
}

// paramsType is the type of a policy's parameters; nil if it is not known.
func (c *checker) paramsType(kind *admissionregistrationv1.ParamKind) (*apiservercel.DeclType, error) {
	if kind == nil {
		return nil, nil
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, nil // its parameters are not found either
	}
	return c.typeOf(gv.WithKind(kind.Kind), "params."+kind.Kind)
}
