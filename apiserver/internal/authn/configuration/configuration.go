package configuration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"kctl/apiserver/internal/configfile"
)

var versions = []string{"v1", "v1beta1", "v1alpha1"}

// Configuration is the content of a file.
type Configuration struct {
	Issuers []Issuer
	// Anonymous is nil if the file does not mention it.
	Anonymous *apiserverv1.AnonymousAuthConfig
}

// Issuer is one issuer of tokens, and how their claims become users.
type Issuer struct {
	apiserverv1.Issuer
	Mapping *Mapping
}

// Parse reads and validates the content of a file. own are the server's own
// issuers, which it may not name.
func Parse(content []byte, own []string) (*Configuration, error) {
	var c apiserverv1.AuthenticationConfiguration
	if err := configfile.Decode(content, "AuthenticationConfiguration", versions, &c); err != nil {
		return nil, fmt.Errorf("failed to load authentication configuration: %w", err)
	}
	out := &Configuration{Anonymous: c.Anonymous}
	errs := validateAnonymous(c.Anonymous, field.NewPath("anonymous"))
	root := field.NewPath("jwt")
	if len(c.JWT) > maxIssuers {
		return nil, invalidError(field.ErrorList{field.TooMany(root, len(c.JWT), maxIssuers)})
	}
	seen := uniqueValues{}
	for i := range c.JWT {
		j, at := &c.JWT[i], root.Index(i)
		errs = append(errs, validateIssuer(&j.Issuer, own, at.Child("issuer"))...)
		errs = append(errs, seen.add(j.Issuer.URL, at.Child("issuer", "url"))...)
		if j.Issuer.DiscoveryURL != nil {
			errs = append(errs, seen.add(*j.Issuer.DiscoveryURL, at.Child("issuer", "discoveryURL"))...)
		}
		mapping, failures := newMapping(j, at)
		errs = append(errs, failures...)
		out.Issuers = append(out.Issuers, Issuer{j.Issuer, mapping})
	}
	if len(errs) > 0 {
		return nil, invalidError(errs)
	}
	return out, nil
}

func invalidError(errs field.ErrorList) error {
	return fmt.Errorf("invalid authentication configuration: %w", errs.ToAggregate())
}

const maxIssuers = 64

// uniqueValues are values that may appear only once.
type uniqueValues map[string]bool

func (u uniqueValues) add(value string, at *field.Path) field.ErrorList {
	if value != "" && u[value] {
		return field.ErrorList{field.Duplicate(at, value)}
	}
	u[value] = true
	return nil
}
