package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// The fields of a pod that its containers may get, in variables and in files.
var (
	envFields = sets.New("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	fileFields     = sets.New("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
	resourceFields = sets.New("limits.cpu", "limits.memory", "limits.ephemeral-storage",
		"requests.cpu", "requests.memory", "requests.ephemeral-storage")
	// knownFields are valid field paths, though not available everywhere.
	knownFields = envFields.Union(fileFields)
)

const moreThanOne = "may not have more than one field specified at a time"

func validateEnv(env []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		path := at.Index(i)
		if env[i].Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else {
			errs = append(errs, check.Messages(path.Child("name"), env[i].Name, validation.IsRelaxedEnvVarName(env[i].Name))...)
		}
		if env[i].ValueFrom != nil {
			errs = append(errs, validateValueFrom(&env[i], path.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateValueFrom(env *corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	from, sources := env.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		errs = append(errs, validateFieldRef(from.FieldRef, envFields, at.Child("fieldRef"))...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		errs = append(errs, validateResourceRef(from.ResourceFieldRef, false, at.Child("resourceFieldRef"))...)
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, at.Child("configMapKeyRef"))...)
	}
	if ref := from.SecretKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, at.Child("secretKeyRef"))...)
	}
	if ref := from.FileKeyRef; ref != nil {
		sources++
		errs = append(errs, validateFileRef(ref, at.Child("fileKeyRef"))...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(at, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case env.Value != "":
		errs = append(errs, field.Invalid(at, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(at, "", moreThanOne))
	}
	return errs
}

func validateKeyRef(name, key string, at *field.Path) field.ErrorList {
	errs := check.Messages(at.Child("name"), name, check.NameIsSubdomain(name, false))
	if key == "" {
		return append(errs, field.Required(at.Child("key"), ""))
	}
	return append(errs, check.Messages(at.Child("key"), key, validation.IsConfigMapKey(key))...)
}

func validateFileRef(ref *corev1.FileKeySelector, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Key == "" {
		errs = append(errs, field.Required(at.Child("key"), ""))
	} else {
		errs = append(errs, check.Messages(at.Child("key"), ref.Key, validation.IsRelaxedEnvVarName(ref.Key))...)
	}
	if ref.VolumeName == "" {
		errs = append(errs, field.Required(at.Child("volumeName"), ""))
	} else {
		errs = append(errs, check.Label(ref.VolumeName, at.Child("volumeName"))...)
	}
	if ref.Path == "" {
		errs = append(errs, field.Required(at.Child("path"), ""))
	}
	return append(errs, check.NoBacksteps(ref.Path, at.Child("path"))...)
}

// variableFiles checks that files with variables are in the pod's own emptyDir
// volumes.
func (s *containerScope) variableFiles(env []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		from := env[i].ValueFrom
		if from == nil || from.FileKeyRef == nil {
			continue
		}
		name, path := from.FileKeyRef.VolumeName, at.Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
		switch volume := s.volumeNamed(name); {
		case volume == nil:
			errs = append(errs, field.NotFound(path, name))
		case volume.EmptyDir == nil:
			errs = append(errs, field.Invalid(path, name, "referenced volume must be of type emptyDir"))
		}
	}
	return errs
}

// volumeNamed is the first volume of that name, valid or not; nil if there is none. A
// pod may have tens of thousands of volumes, and of variables that ask for one.
func (s *containerScope) volumeNamed(name string) *corev1.Volume {
	if s.named == nil {
		s.named = make(map[string]*corev1.Volume, len(s.spec.Volumes))
		for i := range s.spec.Volumes {
			if v := &s.spec.Volumes[i]; s.named[v.Name] == nil {
				s.named[v.Name] = v
			}
		}
	}
	return s.named[name]
}

func validateEnvFrom(sources []corev1.EnvFromSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, source := range sources {
		path := at.Index(i)
		if source.Prefix != "" {
			errs = append(errs, check.Messages(path.Child("prefix"), source.Prefix, validation.IsRelaxedEnvVarName(source.Prefix))...)
		}
		count := 0
		if ref := source.ConfigMapRef; ref != nil {
			count++
			errs = append(errs, envSourceName(ref.Name, path.Child("configMapRef", "name"))...)
		}
		if ref := source.SecretRef; ref != nil {
			count++
			errs = append(errs, envSourceName(ref.Name, path.Child("secretRef", "name"))...)
		}
		switch {
		case count == 0:
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		case count > 1:
			errs = append(errs, field.Invalid(at, "", moreThanOne))
		}
	}
	return errs
}

func envSourceName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return check.Messages(at, name, check.NameIsSubdomain(name, true))
}

func validateFieldRef(ref *corev1.ObjectFieldSelector, readable sets.Set[string], at *field.Path) field.ErrorList {
	if ref.APIVersion == "" {
		return field.ErrorList{field.Required(at.Child("apiVersion"), "")}
	}
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(at.Child("fieldPath"), "")}
	}
	path, key, subscripted := subscript(ref.FieldPath)
	if ref.APIVersion != "v1" {
		return field.ErrorList{field.Invalid(at.Child("fieldPath"), ref.FieldPath,
			"error converting fieldPath: unsupported pod version: "+ref.APIVersion)}
	}
	if !knownFields.Has(path) {
		return field.ErrorList{field.Invalid(at.Child("fieldPath"), ref.FieldPath,
			"error converting fieldPath: field label not supported: "+ref.FieldPath)}
	}
	switch {
	case !subscripted && !readable.Has(path):
		return field.ErrorList{field.NotSupported(at.Child("fieldPath"), path, sets.List(readable))}
	case !subscripted:
		return nil
	case path == "metadata.annotations":
		return check.Messages(at, key, validation.IsQualifiedName(strings.ToLower(key)))
	case path == "metadata.labels":
		return check.Messages(at, key, validation.IsQualifiedName(key))
	}
	return field.ErrorList{field.Invalid(at, path, "does not support subscript")}
}

// subscript splits metadata.labels['app'].
func subscript(path string) (base, key string, ok bool) {
	base, rest, found := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	if !found || !closed || base == "" {
		return path, "", false
	}
	return base, key, true
}

var byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}

func validateResourceRef(ref *corev1.ResourceFieldSelector, inVolume bool, at *field.Path) field.ErrorList {
	kind := strings.TrimPrefix(strings.TrimPrefix(ref.Resource, "limits."), "requests.")
	huge := kind != ref.Resource && check.IsHugePage(corev1.ResourceName(kind))
	switch {
	case inVolume && ref.ContainerName == "":
		return field.ErrorList{field.Required(at.Child("containerName"), "")}
	case ref.Resource == "":
		return field.ErrorList{field.Required(at.Child("resource"), "")}
	case !resourceFields.Has(ref.Resource) && !huge:
		return field.ErrorList{field.NotSupported(at.Child("resource"), ref.Resource, sets.List(resourceFields))}
	case ref.Divisor.IsZero():
		return nil
	}
	divisors, what := byteDivisors, "the "+kind+" resource"
	switch {
	case kind == "cpu":
		divisors = []string{"1m", "1"}
	case kind == "ephemeral-storage":
		what = "the local ephemeral storage resource"
	case huge:
		what = "the hugepages resource"
	}
	if slices.Contains(divisors, ref.Divisor.String()) {
		return nil
	}
	names := strings.Join(divisors, ", ")
	if kind == "cpu" {
		names = "1m and 1"
	}
	return field.ErrorList{field.Invalid(at.Child("divisor"), ref.Resource, "only divisor's values "+names+" are supported with "+what)}
}
