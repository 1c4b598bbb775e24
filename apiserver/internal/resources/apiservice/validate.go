package apiservice

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/scheme"
)

const (
	maxGroupPriority   = 20000
	maxVersionPriority = 1000
)

func validate(s *APIService) field.ErrorList {
	var errs field.ErrorList
	if want := Name(GroupVersion(s)); s.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), s.Name,
			fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)))
	}
	spec := field.NewPath("spec")
	errs = append(errs, validateVersion(&s.Spec, spec)...)
	errs = append(errs, validatePriority(s.Spec.GroupPriorityMinimum, maxGroupPriority, spec.Child("groupPriorityMinimum"))...)
	errs = append(errs, validatePriority(s.Spec.VersionPriority, maxVersionPriority, spec.Child("versionPriority"))...)
	if s.Spec.Service == nil {
		return append(errs, validateLocal(&s.Spec, spec)...)
	}
	return append(errs, validateRemote(s, spec)...)
}

func validateVersion(s *apiregistrationv1.APIServiceSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case s.Group != "":
		errs = append(errs, check.Subdomain(s.Group, spec.Child("group"))...)
	case s.Version != "v1":
		errs = append(errs, field.Required(spec.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	return append(errs, check.Messages(spec.Child("version"), s.Version, validation.IsDNS1035Label(s.Version))...)
}

func validatePriority(value, most int32, at *field.Path) field.ErrorList {
	if value <= 0 || value > most {
		return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be positive and less than %d", most))}
	}
	return nil
}

func validateLocal(s *apiregistrationv1.APIServiceSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.CABundle) > 0 {
		errs = append(errs, field.Invalid(spec.Child("caBundle"), fmt.Sprintf("%d bytes", len(s.CABundle)),
			"local APIServices may not have a caBundle"))
	}
	if s.InsecureSkipTLSVerify {
		errs = append(errs, field.Invalid(spec.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"))
	}
	return errs
}

func validateRemote(s *APIService, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	at, service := spec.Child("service"), s.Spec.Service
	if service.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if service.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if service.Port != nil {
		for _, problem := range validation.IsValidPortNum(int(*service.Port)) {
			errs = append(errs, field.Invalid(at.Child("port"), *service.Port, "port is not valid: "+problem))
		}
	}
	if s.Spec.InsecureSkipTLSVerify && len(s.Spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(spec.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	if scheme.Scheme.IsVersionRegistered(GroupVersion(s)) {
		// Upstream's server would give its own API away; this one's routes are fixed
		// at its start.
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s is built into this server, and not served by others", GroupVersion(s))))
	}
	return errs
}

// statuses are in upstream's order, in which messages list them.
var statuses = []apiregistrationv1.ConditionStatus{
	apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown,
}

func validateStatus(s *APIService) field.ErrorList {
	var errs field.ErrorList
	for i, c := range s.Status.Conditions {
		if !slices.Contains(statuses, c.Status) {
			errs = append(errs, field.NotSupported(field.NewPath("status", "conditions").Index(i).Child("status"), c.Status, statuses))
		}
	}
	return errs
}
