package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// The limits of resolver libraries.
const (
	maxNameservers     = 3
	maxSearchPaths     = 32
	maxSearchListChars = 2048
	maxHostname        = 64
)

func validateDNS(spec *core.PodSpec, at *field.Path) field.ErrorList {
	config := spec.DNSConfig
	if spec.DNSPolicy == corev1.DNSNone {
		if config == nil {
			return field.ErrorList{field.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None")}
		}
		if len(config.Nameservers) == 0 {
			return field.ErrorList{field.Required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")}
		}
	}
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if len(config.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(at.Child("nameservers"), config.Nameservers,
			fmt.Sprintf("must not have more than %d nameservers", maxNameservers)))
	}
	for i, server := range config.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("nameservers").Index(i).Upstream(), server, true, nil)...)
	}
	searches := at.Child("searches")
	if len(config.Searches) > maxSearchPaths {
		errs = append(errs, field.Invalid(searches, config.Searches, fmt.Sprintf("must not have more than %d search paths", maxSearchPaths)))
	}
	if len(strings.Join(config.Searches, " ")) > maxSearchListChars {
		errs = append(errs, field.Invalid(searches, config.Searches,
			fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchListChars)))
	}
	for i, search := range config.Searches {
		errs = append(errs, searchPath(search, searches.Index(i))...)
	}
	for i, option := range config.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(at.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

// searchPath is a domain, optionally with a trailing dot and underscores in its
// labels; the root alone is valid, too.
func searchPath(search string, at *field.Path) field.ErrorList {
	if search == "." {
		return nil
	}
	search = strings.TrimSuffix(search, ".")
	return check.Messages(at, search, validation.IsDNS1123SubdomainWithUnderscore(search))
}

func validateHostAliases(aliases []corev1.HostAlias, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, alias := range aliases {
		errs = append(errs, validation.IsValidIPForLegacyField(at.Index(i).Child("ip").Upstream(), alias.IP, true, nil)...)
		for j, name := range alias.Hostnames {
			errs = append(errs, check.Subdomain(name, at.Index(i).Child("hostnames").Index(j))...)
		}
	}
	return errs
}

func validateHostname(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Hostname != "" {
		errs = append(errs, check.Label(spec.Hostname, at.Child("hostname"))...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, check.Label(spec.Subdomain, at.Child("subdomain"))...)
	}
	override := spec.HostnameOverride
	if override == nil {
		return errs
	}
	path := at.Child("hostnameOverride")
	if len(*override) > maxHostname {
		errs = append(errs, field.TooLong(path, *override, maxHostname))
	}
	errs = append(errs, check.Subdomain(*override, path)...)
	if spec.SetHostnameAsFQDN != nil && *spec.SetHostnameAsFQDN {
		errs = append(errs, field.Forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(path, "may not be specified when hostNetwork is true"))
	}
	return errs
}
