package configuration

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/configfile"
)

// Types of authorizers.
const (
	Webhook = "Webhook"
	// Deny and NoOpinion are the possible decisions if a webhook could not be
	// asked.
	Deny      = "Deny"
	NoOpinion = "NoOpinion"

	inCluster = "InClusterConfig"
	byFile    = "KubeConfigFile"
)

var versions = []string{"v1", "v1beta1", "v1alpha1"}

// Parse reads and validates the content of a file. types are the known types of
// authorizers.
func Parse(content []byte, types []string) ([]Authorizer, error) {
	var c apiserverv1.AuthorizationConfiguration
	if err := configfile.Decode(content, "AuthorizationConfiguration", versions, &c); err != nil {
		return nil, fmt.Errorf("failed to load AuthorizationConfiguration from file: %w", err)
	}
	out := make([]Authorizer, len(c.Authorizers))
	errs := validate(&c, types)
	for i := range c.Authorizers {
		out[i].AuthorizerConfiguration = c.Authorizers[i]
		w := out[i].Webhook
		if w == nil {
			continue
		}
		setDefaults(w)
		conditions, failures := compileConditions(w.MatchConditions, field.NewPath("authorizers").Index(i).Child("matchConditions"))
		out[i].Conditions, errs = conditions, append(errs, failures...)
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return out, nil
}

// Authorizer is one of the file's. Conditions are nil if a webhook is asked
// about every request.
type Authorizer struct {
	apiserverv1.AuthorizerConfiguration
	Conditions *Conditions
}

func setDefaults(w *apiserverv1.WebhookConfiguration) {
	if w.AuthorizedTTL.Duration == 0 {
		w.AuthorizedTTL.Duration = 5 * time.Minute
	}
	if w.UnauthorizedTTL.Duration == 0 {
		w.UnauthorizedTTL.Duration = 30 * time.Second
	}
	if !ptr.Deref(w.CacheAuthorizedRequests, true) {
		w.AuthorizedTTL.Duration = 0
	}
	if !ptr.Deref(w.CacheUnauthorizedRequests, true) {
		w.UnauthorizedTTL.Duration = 0
	}
}

func validate(c *apiserverv1.AuthorizationConfiguration, types []string) field.ErrorList {
	root := field.NewPath("authorizers")
	if len(c.Authorizers) == 0 {
		return field.ErrorList{field.Required(root, "at least one authorization mode must be defined")}
	}
	var errs field.ErrorList
	seen, names := sets.New[string](), sets.New[string]()
	for i := range c.Authorizers {
		a, at := &c.Authorizers[i], root.Index(i)
		switch {
		case !slices.Contains(types, a.Type):
			errs = append(errs, field.NotSupported(at.Child("type"), a.Type, types))
			continue
		case a.Type != Webhook && seen.Has(a.Type):
			errs = append(errs, field.Duplicate(at.Child("type"), a.Type))
			continue
		}
		seen.Insert(a.Type)
		errs = append(errs, validateName(a.Name, names, at.Child("name"))...)
		switch {
		case a.Type == Webhook && a.Webhook == nil:
			errs = append(errs, field.Required(at.Child("webhook"), "required when type=Webhook"))
		case a.Type == Webhook:
			errs = append(errs, validateWebhook(a.Webhook, at)...)
		case a.Webhook != nil:
			errs = append(errs, field.Invalid(at.Child("webhook"), "non-null", "may only be specified when type=Webhook"))
		}
	}
	return errs
}

func validateName(name string, names sets.Set[string], at *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "")}
	case names.Has(name):
		return field.ErrorList{field.Duplicate(at, name)}
	}
	names.Insert(name)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf("authorizer name is invalid: %s", problems[0]))}
	}
	return nil
}

// validateWebhook names fields as upstream does: without "webhook".
func validateWebhook(w *apiserverv1.WebhookConfiguration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch d := w.Timeout.Duration; {
	case d == 0:
		errs = append(errs, field.Required(at.Child("timeout"), ""))
	case d < 0 || d > 30*time.Second:
		errs = append(errs, field.Invalid(at.Child("timeout"), d.String(), "must be > 0s and <= 30s"))
	}
	for _, ttl := range []struct {
		name  string
		value metav1.Duration
	}{{"authorizedTTL", w.AuthorizedTTL}, {"unauthorizedTTL", w.UnauthorizedTTL}} {
		if ttl.value.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child(ttl.name), ttl.value.Duration.String(), "must be > 0s"))
		}
	}
	errs = append(errs, oneOf(w.SubjectAccessReviewVersion, at.Child("subjectAccessReviewVersion"), "v1", "v1beta1")...)
	review := at.Child("matchConditionSubjectAccessReviewVersion")
	if w.MatchConditionSubjectAccessReviewVersion != "" {
		errs = append(errs, oneOf(w.MatchConditionSubjectAccessReviewVersion, review, "v1")...)
	} else if len(w.MatchConditions) > 0 {
		errs = append(errs, field.Required(review, "required if match conditions are specified"))
	}
	errs = append(errs, oneOf(w.FailurePolicy, at.Child("failurePolicy"), NoOpinion, Deny)...)
	return append(errs, validateConnection(w.ConnectionInfo, at.Child("connectionInfo"))...)
}

func oneOf(value string, at *field.Path, known ...string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(at, "")}
	case !slices.Contains(known, value):
		return field.ErrorList{field.NotSupported(at, value, known)}
	}
	return nil
}

func validateConnection(c apiserverv1.WebhookConnectionInfo, at *field.Path) field.ErrorList {
	file := at.Child("kubeConfigFile")
	switch {
	case c.Type == "":
		return field.ErrorList{field.Required(at.Child("type"), "")}
	case c.Type == inCluster:
		return field.ErrorList{field.Invalid(at.Child("type"), c.Type, "is not supported by this server: name a file by "+byFile)}
	case c.Type != byFile:
		return field.ErrorList{field.NotSupported(at.Child("type"), c.Type, []string{inCluster, byFile})}
	case ptr.Deref(c.KubeConfigFile, "") == "":
		return field.ErrorList{field.Required(file, "")}
	case !filepath.IsAbs(*c.KubeConfigFile):
		return field.ErrorList{field.Invalid(file, *c.KubeConfigFile, "must be an absolute path")}
	}
	return nil
}
