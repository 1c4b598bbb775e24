package customresources

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/resources/customresourcedefinition"
)

type condition = apiextensionsv1.CustomResourceDefinitionCondition

// settleStatus settles the status of a definition according to its names and those of the
// others in its group.
func settleStatus(d *definition, others []apiextensionsv1.CustomResourceDefinitionNames, now time.Time) {
	accepted, names := acceptNames(d, others)
	d.Status.AcceptedNames = accepted
	updateApproval(d, now)
	updateNonStructural(d, violations(d), now)
	customresourcedefinition.SetCondition(d, names, now)
	if customresourcedefinition.IsConditionTrue(d, apiextensionsv1.Established) {
		return // for good
	}
	established := condition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted", Message: "not all names are accepted",
	}
	switch {
	case names.Status != apiextensionsv1.ConditionTrue:
	case !hasValidCABundle(d.Spec.Conversion):
		established.Reason, established.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	default:
		established.Status, established.Reason, established.Message = apiextensionsv1.ConditionTrue, "InitialNamesAccepted",
			"the initial names have been accepted"
	}
	customresourcedefinition.SetCondition(d, established, now)
}

// hasValidCABundle reports whether the CA certificates of a conversion webhook, if there
// are any, can be read.
func hasValidCABundle(c *apiextensionsv1.CustomResourceConversion) bool {
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || len(c.Webhook.ClientConfig.CABundle) == 0 {
		return true
	}
	return x509.NewCertPool().AppendCertsFromPEM(c.Webhook.ClientConfig.CABundle)
}

// acceptNames are the requested names that no other definition in the group
// has; for a name that is taken, the earlier one stays.
func acceptNames(d *definition,
	others []apiextensionsv1.CustomResourceDefinitionNames) (apiextensionsv1.CustomResourceDefinitionNames, condition) {
	taken, kinds := sets.Set[string]{}, sets.Set[string]{}
	for i := range others {
		o := &others[i]
		taken.Insert(o.Plural, o.Singular).Insert(o.ShortNames...)
		kinds.Insert(o.Kind, o.ListKind)
	}
	taken.Delete("")
	kinds.Delete("")
	wanted := &d.Spec.Names
	accepted := d.Status.AcceptedNames
	result := condition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts",
		Message: "no conflicts found",
	}
	try := func(name string, among sets.Set[string], into *string, reason string) {
		if among.Has(name) {
			result.Status, result.Reason, result.Message = apiextensionsv1.ConditionFalse, reason, fmt.Sprintf("%q is already in use", name)
			return
		}
		*into = name
	}
	try(wanted.Plural, taken, &accepted.Plural, "PluralConflict")
	try(wanted.Singular, taken, &accepted.Singular, "SingularConflict")
	var short []string
	for _, name := range wanted.ShortNames {
		if taken.Has(name) {
			short = append(short, fmt.Sprintf("%q is already in use", name))
		}
	}
	if len(short) == 0 {
		accepted.ShortNames = slices.Clone(wanted.ShortNames)
	} else {
		result.Status, result.Reason, result.Message = apiextensionsv1.ConditionFalse, "ShortNamesConflict", strings.Join(short, ", ")
		if len(short) > 1 {
			result.Message = "[" + result.Message + "]"
		}
	}
	try(wanted.Kind, kinds, &accepted.Kind, "KindConflict")
	try(wanted.ListKind, kinds, &accepted.ListKind, "ListKindConflict")
	accepted.Categories = slices.Clone(wanted.Categories)
	return accepted, result
}

// updateApproval records whether a definition in a protected group was
// approved.
func updateApproval(d *definition, now time.Time) {
	if customresourcedefinition.IsProtectedGroup(d.Spec.Group) {
		customresourcedefinition.SetCondition(d, approvalCondition(d), now)
	}
}

func approvalIsCurrent(d *definition) bool {
	if !customresourcedefinition.IsProtectedGroup(d.Spec.Group) {
		return true
	}
	want := approvalCondition(d)
	return slices.ContainsFunc(d.Status.Conditions, func(c condition) bool {
		return c.Type == want.Type && c.Status == want.Status && c.Message == want.Message
	})
}

func approvalCondition(d *definition) condition {
	c := condition{Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse}
	value := d.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]
	u, err := url.ParseRequestURI(value)
	switch {
	case value == "":
		c.Reason = "MissingAnnotation"
		c.Message = `protected groups must have approval annotation "` + apiextensionsv1.KubeAPIApprovedAnnotation +
			`", see https://github.com/kubernetes/enhancements/pull/1111`
	case strings.HasPrefix(value, "unapproved"):
		c.Reason, c.Message = "UnapprovedAnnotation", fmt.Sprintf("not approved: %q", value)
	case err == nil && u.Host != "":
		c.Status, c.Reason, c.Message = apiextensionsv1.ConditionTrue, "ApprovedAnnotation", "approved in "+value
	default:
		c.Reason = "InvalidAnnotation"
		c.Message = `protected groups must have approval annotation "` + apiextensionsv1.KubeAPIApprovedAnnotation +
			`" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`
	}
	return c
}
