package customresourcedefinition

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// reviewVersions are the supported versions of ConversionReview.
var reviewVersions = []string{"v1", "v1beta1"}

func validateConversion(c *apiextensionsv1.CustomResourceConversion, preserves bool, path *field.Path) (errs field.ErrorList) {
	if c == nil {
		return nil
	}
	if preserves && c.Strategy != apiextensionsv1.NoneConverter {
		errs = append(errs, field.Invalid(path.Child("strategy"), c.Strategy, "must be None if spec.preserveUnknownFields is true"))
	}
	config, versions := path.Child("webhookClientConfig"), path.Child("conversionReviewVersions")
	switch c.Strategy {
	case apiextensionsv1.NoneConverter:
		if c.Webhook != nil && c.Webhook.ClientConfig != nil {
			errs = append(errs, field.Forbidden(config, "should not be set when strategy is not set to Webhook"))
		}
		if c.Webhook != nil && len(c.Webhook.ConversionReviewVersions) > 0 {
			errs = append(errs, field.Forbidden(versions, "should not be set when strategy is not set to Webhook"))
		}
		return errs
	case apiextensionsv1.WebhookConverter:
		return append(errs, validateWebhookConversion(c.Webhook, config, versions)...)
	case "":
		return append(errs, field.Required(path.Child("strategy"), ""))
	}
	return append(errs, field.NotSupported(path.Child("strategy"), c.Strategy, []string{"None", "Webhook"}))
}

func validateWebhookConversion(w *apiextensionsv1.WebhookConversion, config, versions *field.Path) (errs field.ErrorList) {
	if w == nil || w.ClientConfig == nil {
		errs = append(errs, field.Required(config, "required when strategy is set to Webhook"))
	} else {
		errs = append(errs, validateClient(w.ClientConfig, config)...)
	}
	if w == nil || len(w.ConversionReviewVersions) == 0 {
		return append(errs, field.Required(versions, ""))
	}
	seen := map[string]bool{}
	for i, v := range w.ConversionReviewVersions {
		if seen[v] {
			errs = append(errs, field.Invalid(versions.Index(i), v, "duplicate version"))
			continue
		}
		seen[v] = true
		for _, problem := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(versions.Index(i), v, problem))
		}
	}
	if !slices.ContainsFunc(w.ConversionReviewVersions, func(v string) bool { return slices.Contains(reviewVersions, v) }) {
		errs = append(errs, field.Invalid(versions, w.ConversionReviewVersions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

func validateClient(c *apiextensionsv1.WebhookClientConfig, path *field.Path) (errs field.ErrorList) {
	if (c.URL == nil) == (c.Service == nil) {
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	}
	if c.URL != nil {
		return check.WebhookURL(*c.URL, path.Child("url"))
	}
	return check.WebhookService(c.Service.Namespace, c.Service.Name, c.Service.Port, c.Service.Path, path.Child("service"))
}
