package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/resources/check"
)

// validateProjected checks each source of a projected volume, and that no two
// of them want to write the same file.
func validateProjected(p *corev1.ProjectedVolumeSource, at *field.Path) field.ErrorList {
	errs := fileMode(p.DefaultMode, at.Child("defaultMode"))
	files := sets.New[string]()
	for i := range p.Sources {
		path := at.Child("sources").Index(i)
		paths, found := validateProjection(&p.Sources[i], path)
		errs = append(errs, found...)
		for _, file := range paths {
			if files.Has(file) {
				errs = append(errs, field.Invalid(at, file, "conflicting duplicate paths"))
			}
			files.Insert(file)
		}
	}
	return errs
}

// validateProjection also returns the files that the source is said to write.
func validateProjection(s *corev1.VolumeProjection, at *field.Path) (files []string, errs field.ErrorList) {
	kinds := 0
	if s.Secret != nil {
		kinds++
		path := at.Child("secret")
		errs = append(errs, check.Need(path, "name", s.Secret.Name)...)
		errs = append(errs, validateFiles(nil, s.Secret.Items, path)...)
		files = append(files, itemPaths(s.Secret.Items)...)
	}
	if s.ConfigMap != nil {
		kinds++
		path := at.Child("configMap")
		errs = append(errs, check.Need(path, "name", s.ConfigMap.Name)...)
		errs = append(errs, validateFiles(nil, s.ConfigMap.Items, path)...)
		files = append(files, itemPaths(s.ConfigMap.Items)...)
	}
	if s.DownwardAPI != nil {
		kinds++
		errs = append(errs, validateDownward(s.DownwardAPI.Items, at.Child("downwardAPI"))...)
		for _, item := range s.DownwardAPI.Items {
			files = append(files, item.Path)
		}
	}
	if token := s.ServiceAccountToken; token != nil {
		kinds++
		errs = append(errs, validateToken(token, at.Child("serviceAccountToken"))...)
		files = append(files, token.Path)
	}
	if bundle := s.ClusterTrustBundle; bundle != nil {
		kinds++
		path := at.Child("clusterTrustBundle")
		if (bundle.Name == nil) == (bundle.SignerName == nil) {
			errs = append(errs, field.Required(path, "either name or signerName must be specified"))
		}
		errs = append(errs, check.Need(path, "path", bundle.Path)...)
		errs = append(errs, fileName(bundle.Path, path.Child("path"))...)
		files = append(files, bundle.Path)
	}
	if cert := s.PodCertificate; cert != nil {
		kinds++
		paths, found := validatePodCertificate(cert, at.Child("podCertificate"))
		files, errs = append(files, paths...), append(errs, found...)
	}
	switch {
	case kinds == 0:
		errs = append(errs, field.Required(at, "must specify a volume type"))
	case kinds > 1:
		errs = append(errs, field.Forbidden(at, oneVolumeMessage))
	}
	return files, errs
}

func itemPaths(items []corev1.KeyToPath) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.Path)
	}
	return out
}

// Bounds of a projected token's life.
const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

func validateToken(token *corev1.ServiceAccountTokenProjection, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	expiration := at.Child("expirationSeconds")
	switch seconds := token.ExpirationSeconds; {
	case seconds == nil:
		errs = append(errs, field.Required(expiration, ""))
	case *seconds < minTokenSeconds:
		errs = append(errs, field.Invalid(expiration, *seconds, "may not specify a duration less than 10 minutes"))
	case *seconds > maxTokenSeconds:
		errs = append(errs, field.Invalid(expiration, *seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if token.User != nil {
		errs = append(errs, field.Forbidden(at.Child("user"), "belongs to an alpha feature that this server does not have"))
	}
	if token.Path == "" {
		return append(errs, field.Required(at.Child("path"), ""))
	}
	return append(errs, fileName(token.Path, at.Child("path"))...)
}
