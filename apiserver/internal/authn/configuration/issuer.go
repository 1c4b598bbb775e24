package configuration

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
)

func validateAnonymous(a *apiserverv1.AnonymousAuthConfig, at *field.Path) field.ErrorList {
	if a != nil && !a.Enabled && len(a.Conditions) > 0 {
		return field.ErrorList{field.Invalid(at.Child("conditions"), a.Conditions, "enabled should be set to true when conditions are defined")}
	}
	return nil
}

func validateIssuer(i *apiserverv1.Issuer, own []string, at *field.Path) field.ErrorList {
	errs := validateURL(i.URL, at.Child("url"))
	if slices.Contains(own, i.URL) {
		errs = append(errs, field.Invalid(at.Child("url"), i.URL, fmt.Sprintf("URL must not overlap with disallowed issuers: %s", own)))
	}
	if address := ptr.Deref(i.DiscoveryURL, ""); address != "" {
		discovery := at.Child("discoveryURL")
		if address == i.URL || address == i.URL+"/" {
			errs = append(errs, field.Invalid(discovery, address, "discoveryURL must be different from URL"))
		}
		errs = append(errs, validateURL(address, discovery)...)
	}
	errs = append(errs, validateAudiences(i, at)...)
	if i.CertificateAuthority != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(i.CertificateAuthority)) {
		errs = append(errs, field.Invalid(at.Child("certificateAuthority"), "<omitted>",
			"data does not contain any valid RSA or ECDSA certificates"))
	}
	switch i.EgressSelectorType {
	case "":
	case apiserverv1.EgressSelectorControlPlane, apiserverv1.EgressSelectorCluster:
		errs = append(errs, field.Invalid(at.Child("egressSelectorType"), i.EgressSelectorType,
			"egress selectors are not supported by this server"))
	default:
		errs = append(errs, field.Invalid(at.Child("egressSelectorType"), i.EgressSelectorType,
			"egress selector must be either controlplane or cluster"))
	}
	return errs
}

func validateURL(text string, at *field.Path) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	var errs field.ErrorList
	for _, problem := range []struct {
		found bool
		says  string
	}{
		{u.Scheme != "https", "URL scheme must be https"},
		{u.User != nil, "URL must not contain a username or password"},
		{u.RawQuery != "", "URL must not contain a query"},
		{u.Fragment != "", "URL must not contain a fragment"},
	} {
		if problem.found {
			errs = append(errs, field.Invalid(at, text, problem.says))
		}
	}
	return errs
}

func validateAudiences(i *apiserverv1.Issuer, at *field.Path) field.ErrorList {
	audiences, policy := at.Child("audiences"), at.Child("audienceMatchPolicy")
	if len(i.Audiences) == 0 {
		return field.ErrorList{field.Required(audiences, "at least one "+audiences.String()+" is required")}
	}
	var errs field.ErrorList
	seen := uniqueValues{}
	for k, audience := range i.Audiences {
		if audience == "" {
			errs = append(errs, field.Required(audiences.Index(k), ""))
		}
		errs = append(errs, seen.add(audience, audiences.Index(k))...)
	}
	matchAny := i.AudienceMatchPolicy == apiserverv1.AudienceMatchPolicyMatchAny
	switch {
	case len(i.Audiences) > 1 && !matchAny:
		errs = append(errs, field.Invalid(policy, i.AudienceMatchPolicy, "audienceMatchPolicy must be MatchAny for multiple audiences"))
	case i.AudienceMatchPolicy != "" && !matchAny:
		errs = append(errs, field.Invalid(policy, i.AudienceMatchPolicy, "audienceMatchPolicy must be empty or MatchAny for single audience"))
	}
	return errs
}
