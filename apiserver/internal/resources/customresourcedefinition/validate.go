package customresourcedefinition

import (
	"context"
	"net/url"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
)

// validate checks a definition; old is nil for a new one.
func validate(ctx context.Context, d, old *Definition) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if old == nil && d.Name != "" && d.Name != d.Spec.Names.Plural+"."+d.Spec.Group { // later, neither changes
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), d.Name, `must be spec.names.plural+"."+spec.group`))
	}
	errs = append(errs, validateGroup(d, spec.Child("group"))...)
	errs = append(errs, validateScope(d.Spec.Scope, spec.Child("scope"))...)
	errs = append(errs, validateVersions(ctx, d, old, spec)...)
	errs = append(errs, validateNames(&d.Spec.Names, spec.Child("names"))...)
	errs = append(errs, validateCommonParts(ctx, d, old, spec)...)
	errs = append(errs, validateConversion(d.Spec.Conversion, d.Spec.PreserveUnknownFields, spec.Child("conversion"))...)
	errs = append(errs, validateStored(d)...)
	errs = append(errs, validateApproval(d, old)...)
	if d.Spec.PreserveUnknownFields && (old == nil || !old.Spec.PreserveUnknownFields) {
		errs = append(errs, field.Invalid(spec.Child("preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	if old != nil {
		errs = append(errs, validateImmutable(d, old, spec)...)
	}
	return errs
}

func validateGroup(d *Definition, path *field.Path) field.ErrorList {
	group := d.Spec.Group
	if group == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(group) {
		errs = append(errs, field.Invalid(path, group, problem))
	}
	if len(errs) == 0 && !strings.Contains(group, ".") {
		errs = append(errs, field.Invalid(path, group, "should be a domain with at least one dot"))
	}
	return errs
}

// IsProtectedGroup reports whether a group belongs to the community, so that its
// definitions need approval.
func IsProtectedGroup(group string) bool {
	return group == "k8s.io" || group == "kubernetes.io" || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")
}

// validateApproval checks the annotation that definitions in protected groups need.
func validateApproval(d, old *Definition) field.ErrorList {
	if !IsProtectedGroup(d.Spec.Group) {
		return nil
	}
	const why = ", see https://github.com/kubernetes/enhancements/pull/1111"
	annotation := apiextensionsv1.KubeAPIApprovedAnnotation
	value := d.Annotations[annotation]
	if old != nil && old.Annotations[annotation] == value {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(annotation)
	if value == "" {
		return field.ErrorList{field.Required(path, `protected groups must have approval annotation "`+annotation+`"`+why)}
	}
	if u, err := url.ParseRequestURI(value); err == nil && u.Host != "" || strings.HasPrefix(value, "unapproved") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value,
		`protected groups must have approval annotation "`+annotation+`" with either a URL or a reason starting with "unapproved"`+why)}
}

func validateScope(scope apiextensionsv1.ResourceScope, path *field.Path) field.ErrorList {
	switch scope {
	case apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped:
		return nil
	case "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, scope, []string{"Cluster", "Namespaced"})}
}

func validateNames(names *apiextensionsv1.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	label := func(path *field.Path, value string) {
		if value == "" {
			errs = append(errs, field.Required(path, ""))
			return
		}
		for _, problem := range validation.IsDNS1035Label(value) {
			errs = append(errs, field.Invalid(path, value, problem))
		}
	}
	mixed := func(path *field.Path, value string) {
		if value == "" {
			errs = append(errs, field.Required(path, ""))
			return
		}
		for _, problem := range validation.IsDNS1035Label(strings.ToLower(value)) {
			errs = append(errs, field.Invalid(path, value, "may have mixed case, but should otherwise match: "+problem))
		}
	}
	label(path.Child("plural"), names.Plural)
	label(path.Child("singular"), names.Singular)
	mixed(path.Child("kind"), names.Kind)
	mixed(path.Child("listKind"), names.ListKind)
	each := func(path *field.Path, values []string) {
		for i, value := range values {
			for _, problem := range validation.IsDNS1035Label(value) {
				errs = append(errs, field.Invalid(path.Index(i), value, problem))
			}
		}
	}
	each(path.Child("shortNames"), names.ShortNames)
	if names.Kind != "" && names.Kind == names.ListKind {
		errs = append(errs, field.Invalid(path.Child("listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	each(path.Child("categories"), names.Categories)
	return errs
}

// validateStatus validates the accepted names, if there are any.
func validateStatus(s *apiextensionsv1.CustomResourceDefinitionStatus) field.ErrorList {
	names := s.AcceptedNames
	path := field.NewPath("status", "acceptedNames")
	var errs field.ErrorList
	for _, e := range validateNames(&names, path) {
		if e.Type != field.ErrorTypeRequired {
			errs = append(errs, e)
		}
	}
	return errs
}

// validateStored checks that the storage version is among the stored versions,
// and that all of these still exist.
func validateStored(d *Definition) (errs field.ErrorList) {
	path := field.NewPath("status", "storedVersions")
	stored := d.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	known := map[string]bool{}
	for _, name := range stored {
		known[name] = true
	}
	for _, v := range d.Spec.Versions {
		if v.Storage && !known[v.Name] {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+v.Name))
		}
		delete(known, v.Name) // a second one of that name has no claim to it
	}
	for i, name := range stored {
		if !slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name }) {
			errs = append(errs, field.Invalid(path.Index(i), name, "missing from spec.versions; "+name+
				" was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in "+
				name+" and removes "+name+" from status.storedVersions"))
		}
	}
	return errs
}

// validateImmutable refuses changes of the resource's identity.
func validateImmutable(d, old *Definition, path *field.Path) (errs field.ErrorList) {
	same := func(path *field.Path, now, before any) {
		if !reflect.DeepEqual(now, before) {
			errs = append(errs, field.Invalid(path, now, "field is immutable"))
		}
	}
	if IsConditionTrue(old, apiextensionsv1.Established) {
		same(path.Child("scope"), d.Spec.Scope, old.Spec.Scope)
		same(path.Child("names", "kind"), d.Spec.Names.Kind, old.Spec.Names.Kind)
	}
	same(path.Child("group"), d.Spec.Group, old.Spec.Group)
	same(path.Child("names", "plural"), d.Spec.Names.Plural, old.Spec.Names.Plural)
	return errs
}
