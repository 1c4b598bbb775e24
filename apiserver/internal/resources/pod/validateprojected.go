package pod

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/clustertrustbundle"
)

// validateProjected validates each source of a projected volume, and that no
// two of them write the same file.
func validateProjected(p *corev1.ProjectedVolumeSource, at *field.Path) field.ErrorList {
	errs := append(fileMode(p.DefaultMode, at.Child("defaultMode")), owner(p.DefaultUser, at.Child("defaultUser"))...)
	files := sets.New[string]()
	for i := range p.Sources {
		path := at.Child("sources").Index(i)
		written, found := validateProjection(&p.Sources[i], path, at)
		errs = append(errs, found...)
		for _, file := range written {
			if files.Has(file.path) {
				errs = append(errs, field.Invalid(at, cmp.Or(file.name, file.path), "conflicting duplicate paths"))
			}
			files.Insert(file.path)
		}
	}
	return errs
}

// forbidTokens refuses tokens of a service account that the pod does not have: mirror pods have none.
func forbidTokens(volumes []corev1.Volume, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range volumes {
		if volumes[i].Projected == nil {
			continue
		}
		for j := range volumes[i].Projected.Sources {
			if volumes[i].Projected.Sources[j].ServiceAccountToken != nil {
				errs = append(errs, field.Forbidden(at.Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken"),
					"must not be specified when serviceAccountName is not set"))
			}
		}
	}
	return errs
}

// validateProjection also returns the files that the source explicitly writes,
// except those of tokens, which upstream lets replace others. volume is the
// path of the whole volume.
func validateProjection(s *corev1.VolumeProjection, at, volume *field.Path) (files []file, errs field.ErrorList) {
	kinds := 0
	if s.Secret != nil {
		kinds++
		errs = append(errs, validateKeys(s.Secret.Name, s.Secret.Items, at.Child("secret"))...)
		files = withItems(files, s.Secret.Items, "Secret", s.Secret.Name)
	}
	if s.ConfigMap != nil {
		kinds++
		errs = append(errs, validateKeys(s.ConfigMap.Name, s.ConfigMap.Items, at.Child("configMap"))...)
		files = withItems(files, s.ConfigMap.Items, "ConfigMap", s.ConfigMap.Name)
	}
	if s.DownwardAPI != nil {
		kinds++
		errs = append(errs, validateDownward(s.DownwardAPI.Items, at.Child("downwardAPI"))...)
		files = withDownward(files, s.DownwardAPI.Items, "DownwardAPI")
	}
	if token := s.ServiceAccountToken; token != nil {
		kinds++
		errs = append(errs, validateToken(token, at.Child("serviceAccountToken"), volume.Child("path"))...)
	}
	if bundle := s.ClusterTrustBundle; bundle != nil {
		kinds++
		path := at.Child("clusterTrustBundle")
		errs = append(errs, validateBundle(bundle, path)...)
		errs = append(errs, owner(bundle.User, path.Child("user"))...)
		errs = append(errs, check.Required(path, "path", bundle.Path)...)
		errs = append(errs, fileName(bundle.Path, path.Child("path"))...)
		files = append(files, file{path: bundle.Path})
	}
	if cert := s.PodCertificate; cert != nil {
		kinds++
		paths, found := validatePodCertificate(cert, at.Child("podCertificate"))
		errs = append(errs, found...)
		for _, path := range paths {
			files = append(files, file{path: path})
		}
	}
	if kinds > 1 {
		errs = append(errs, field.Forbidden(at, oneVolumeMessage+" per source"))
	}
	return files, errs
}

// validateKeys validates a projected secret or config map: its name, and its keys.
func validateKeys(name string, items []corev1.KeyToPath, at *field.Path) field.ErrorList {
	return append(check.Required(at, "name", name), validateFiles(nil, nil, items, at)...)
}

// Bounds on a projected token's lifetime.
const (
	minTokenSeconds = 10 * 60
	maxTokenSeconds = 1 << 32
)

func validateToken(token *corev1.ServiceAccountTokenProjection, at, path *field.Path) field.ErrorList {
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
	errs = append(errs, owner(token.User, at.Child("user"))...)
	if token.Path == "" {
		return append(errs, field.Required(path, ""))
	}
	return append(errs, fileName(token.Path, path)...)
}

// validateBundle checks that a trust bundle is either named, or selected among those of a
// signer.
func validateBundle(b *corev1.ClusterTrustBundleProjection, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch name, signer := at.Child("name"), at.Child("signerName"); {
	case b.Name != nil && b.SignerName != nil:
		errs = append(errs, field.Invalid(at, check.GoFieldNames{Value: *b}, "only one of name and signerName may be used"))
	case b.Name != nil:
		if *b.Name == "" {
			errs = append(errs, field.Required(name, "must be a valid object name"))
		}
		for _, text := range clustertrustbundle.CheckName(*b.Name) {
			errs = append(errs, field.Invalid(name, *b.Name, "not a valid clustertrustbundlename: "+text))
		}
		if b.LabelSelector != nil {
			errs = append(errs, field.Invalid(at.Child("labelSelector"), b.LabelSelector, "labelSelector must be unset if name is specified"))
		}
	case b.SignerName != nil:
		if *b.SignerName == "" {
			errs = append(errs, field.Required(signer, "must be a valid signer name"))
		}
		errs = append(errs, certificatesigningrequest.ValidateSigner(*b.SignerName, signer)...)
		errs = append(errs, check.LabelSelector(b.LabelSelector, at.Child("labelSelector"))...)
	default:
		errs = append(errs, field.Required(at, "either name or signerName must be specified"))
	}
	return errs
}
