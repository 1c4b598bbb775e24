package networking

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

func validateIngress(s *networkingv1.IngressSpec) field.ErrorList {
	var errs field.ErrorList
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		errs = append(errs, field.Invalid(specPath, s.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if s.DefaultBackend != nil {
		errs = append(errs, validateBackend(s.DefaultBackend, specPath.Child("defaultBackend"))...)
	}
	for i, rule := range s.Rules {
		at := specPath.Child("rules").Index(i)
		if rule.Host != "" {
			errs = append(errs, validateHost(rule.Host, at.Child("host"), true)...)
		}
		if rule.HTTP != nil {
			errs = append(errs, validatePaths(rule.HTTP.Paths, at.Child("http", "paths"))...)
		}
	}
	for i, tls := range s.TLS {
		at := specPath.Child("tls").Index(i)
		for k, host := range tls.Hosts {
			errs = append(errs, validateHost(host, at.Child("hosts").Index(k), false)...)
		}
		if tls.SecretName != "" {
			errs = append(errs, check.Messages(at.Child("secretName"), tls.SecretName, check.NameIsSubdomain(tls.SecretName, false))...)
		}
	}
	if class := s.IngressClassName; class != nil {
		errs = append(errs, check.Messages(specPath.Child("ingressClassName"), *class, check.NameIsSubdomain(*class, false))...)
	}
	return errs
}

func validateHost(host string, at *field.Path, notIP bool) field.ErrorList {
	var errs field.ErrorList
	if notIP && netutils.ParseIPSloppy(host) != nil {
		errs = append(errs, field.Invalid(at, host, "must be a DNS name, not an IP address"))
	}
	if strings.Contains(host, "*") {
		return append(errs, check.Messages(at, host, validation.IsWildcardDNS1123Subdomain(host))...)
	}
	return append(errs, check.Messages(at, host, validation.IsDNS1123Subdomain(host))...)
}

func validatePaths(paths []networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	if len(paths) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	for i := range paths {
		p, path := &paths[i], at.Index(i)
		switch kind := ptr.Deref(p.PathType, ""); {
		case p.PathType == nil:
			errs = append(errs, field.Required(path.Child("pathType"), "pathType must be specified"))
			continue
		case kind == networkingv1.PathTypeExact, kind == networkingv1.PathTypePrefix:
			errs = append(errs, validatePath(p.Path, path.Child("path"))...)
		case kind == networkingv1.PathTypeImplementationSpecific:
			if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
				errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must be an absolute path"))
			}
		default:
			errs = append(errs, check.Supported(kind, path.Child("pathType"),
				networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)...)
		}
		errs = append(errs, validateBackend(&p.Backend, path.Child("backend"))...)
	}
	return errs
}

func validatePath(p string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !strings.HasPrefix(p, "/") {
		errs = append(errs, field.Invalid(at, p, "must be an absolute path"))
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(p, part) {
			errs = append(errs, field.Invalid(at, p, fmt.Sprintf("must not contain '%s'", part)))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(p, end) {
			errs = append(errs, field.Invalid(at, p, fmt.Sprintf("cannot end with '%s'", end)))
		}
	}
	return errs
}

func validateBackend(b *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(at, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return validateTypedReference(b.Resource.APIGroup, b.Resource.Kind, b.Resource.Name, at.Child("resource"))
	case b.Service == nil:
		return field.ErrorList{field.Invalid(at, "", "resource or service backend is required")}
	}
	var errs field.ErrorList
	service := at.Child("service")
	if b.Service.Name == "" {
		errs = append(errs, field.Required(service.Child("name"), ""))
	} else {
		errs = append(errs, check.Messages(service.Child("name"), b.Service.Name, validation.IsDNS1123Label(b.Service.Name))...)
	}
	name, number := b.Service.Port.Name, b.Service.Port.Number
	switch {
	case name != "" && number != 0:
		errs = append(errs, field.Invalid(at, "", "cannot set both port name & port number"))
	case name != "":
		errs = append(errs, check.Messages(service.Child("port", "name"), name, validation.IsValidPortName(name))...)
	case number != 0:
		errs = append(errs, check.Messages(service.Child("port", "number"), number, validation.IsValidPortNum(int(number)))...)
	default:
		errs = append(errs, field.Required(at, "port name or number is required"))
	}
	return errs
}

func validateTypedReference(group *string, kind, name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group != nil {
		errs = append(errs, check.Messages(at.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))...)
	}
	for _, f := range []struct{ name, value string }{{"kind", kind}, {"name", name}} {
		if f.value == "" {
			errs = append(errs, field.Required(at.Child(f.name), ""))
			continue
		}
		errs = append(errs, check.Messages(at.Child(f.name), f.value, content.IsPathSegmentName(f.value))...)
	}
	return errs
}

const maxController = 250

func validateClass(s *networkingv1.IngressClassSpec) field.ErrorList {
	at := specPath.Child("controller")
	var errs field.ErrorList
	if len(s.Controller) > maxController {
		errs = append(errs, field.TooLong(at, s.Controller, maxController))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(at.Upstream(), s.Controller)...)
	p := s.Parameters
	if p == nil {
		return errs
	}
	path := specPath.Child("parameters")
	errs = append(errs, validateTypedReference(p.APIGroup, p.Kind, p.Name, path)...)
	if p.Scope == nil {
		return append(errs, field.Required(path.Child("scope"), ""))
	}
	switch scope := *p.Scope; scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		if p.Namespace == nil {
			errs = append(errs, field.Required(path.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
		} else {
			errs = append(errs, check.Messages(path.Child("namespace"), *p.Namespace, check.NameIsLabel(*p.Namespace, false))...)
		}
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			errs = append(errs, field.Forbidden(path.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
		}
	default:
		errs = append(errs, check.Supported(scope, path.Child("scope"),
			networkingv1.IngressClassParametersReferenceScopeNamespace, networkingv1.IngressClassParametersReferenceScopeCluster)...)
	}
	return errs
}

// validateAddresses validates load balancers' addresses. Those from before may have any form, new
// ones need not be canonical (KEP-4858).
func validateAddresses(list, before []networkingv1.IngressLoadBalancerIngress, at *field.Path) field.ErrorList {
	var had []string
	for _, address := range before {
		had = append(had, address.IP)
	}
	var errs field.ErrorList
	for i, address := range list {
		if address.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Index(i).Child("ip").Upstream(), address.IP, true, had)...)
		}
		if address.Hostname == "" {
			continue
		}
		path := at.Index(i).Child("hostname")
		errs = append(errs, check.Subdomain(address.Hostname, path)...)
		if netutils.ParseIPSloppy(address.Hostname) != nil {
			errs = append(errs, field.Invalid(path, address.Hostname, "must be a DNS name, not an IP address"))
		}
	}
	return errs
}
