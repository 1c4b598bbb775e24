package customresourcedefinition

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"kctl/apiserver/internal/field"
)

// TestManyReviewVersions: they do not take minutes.
func TestManyReviewVersions(t *testing.T) {
	url := "https://x"
	hook := &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"}}
	for i := range 300_000 {
		hook.ConversionReviewVersions = append(hook.ConversionReviewVersions, fmt.Sprintf("v1x%d", i))
	}
	hook.ConversionReviewVersions = append(hook.ConversionReviewVersions, "v1x299999")
	errs := validateConversion(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: hook}, false, field.NewPath("c"))
	if len(errs) != 1 || errs[0].Field != "c.conversionReviewVersions[300001]" {
		t.Errorf("%.300v", errs)
	}
}
