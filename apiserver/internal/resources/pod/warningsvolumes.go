package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/resources/check"
)

func volumeWarnings(v *corev1.Volume, at string, index int) []string {
	var out []string
	for _, kind := range [...]struct {
		name string
		used bool
	}{
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil}, {"scaleIO", v.ScaleIO != nil}, {"flocker", v.Flocker != nil},
		{"gitRepo", v.GitRepo != nil}, //lint:ignore SA1019 to say that it is deprecated
		{"storageOS", v.StorageOS != nil}, {"quobyte", v.Quobyte != nil}, {"glusterfs", v.Glusterfs != nil},
		{"cephfs", v.CephFS != nil}, {"rbd", v.RBD != nil},
	} {
		if kind.used {
			out = append(out, fmt.Sprintf("%s.volumes[%d].%s: %s", at, index, kind.name, check.VolumeWarnings[kind.name]))
		}
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		path := fmt.Sprintf("%s.volumes[%d].ephemeral.volumeClaimTemplate.spec", at, index)
		out = append(out, check.ClaimWarnings(&v.Ephemeral.VolumeClaimTemplate.Spec, path)...)
	}
	return out
}

// file is a file that a volume writes, and its source.
type file struct{ path, kind, name string }

func (f file) String() string {
	switch {
	case f.kind == "":
		return fmt.Sprintf("%q", f.path)
	case f.name == "":
		return fmt.Sprintf("%q (%s)", f.path, f.kind)
	}
	return fmt.Sprintf("%q (%s %q)", f.path, f.kind, f.name)
}

// overlapWarnings warns about files of a volume that overwrite each other. The
// initial capacity suffices for most volumes.
func overlapWarnings(v *corev1.Volume) []string {
	var room [8]file
	switch {
	case v.ConfigMap != nil:
		return overlaps(v, "ConfigMap", v.ConfigMap.Name, withItems(room[:0], v.ConfigMap.Items, "", ""))
	case v.Secret != nil:
		return overlaps(v, "Secret", v.Secret.SecretName, withItems(room[:0], v.Secret.Items, "", ""))
	case v.DownwardAPI != nil:
		return overlaps(v, "DownwardAPI", "", withDownward(room[:0], v.DownwardAPI.Items, ""))
	case v.Projected == nil:
		return nil
	}
	var empty []string
	files := room[:0]
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if *source == (corev1.VolumeProjection{}) {
			empty = append(empty, fmt.Sprintf("volume %q (Projected) has no sources provided", v.Name))
		}
		files = withProjected(files, source)
	}
	return append(empty, overlaps(v, "Projected", "", files)...)
}

// Each file is compared with all earlier ones, and each pair may cause a warning: a
// volume may list so many that this would exhaust memory. An answer's header has
// room for fewer warnings than maxOverlaps.
const (
	maxCompared = 1000
	maxOverlaps = 100
)

// overlaps compares each of the files with the earlier ones.
func overlaps(v *corev1.Volume, kind, name string, files []file) []string {
	var out []string
	files = files[:min(len(files), maxCompared)]
	for i := range files {
		files[i].path = strings.TrimRight(files[i].path, "/")
	}
	for i, f := range files {
		for _, before := range files[:i] {
			if f.path != before.path && !within(f.path, before.path) && !within(before.path, f.path) {
				continue
			}
			if len(out) == maxOverlaps {
				return out
			}
			if name != "" {
				out = append(out, fmt.Sprintf("volume %q (%s %q): overlapping paths: %s with %s", v.Name, kind, name, f, before))
			} else {
				out = append(out, fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", v.Name, kind, f, before))
			}
		}
	}
	return out
}

// within reports whether path is in the directory dir.
func within(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

func withProjected(files []file, s *corev1.VolumeProjection) []file {
	switch {
	case s.Secret != nil:
		return withItems(files, s.Secret.Items, "Secret", s.Secret.Name)
	case s.ConfigMap != nil:
		return withItems(files, s.ConfigMap.Items, "ConfigMap", s.ConfigMap.Name)
	case s.DownwardAPI != nil:
		return withDownward(files, s.DownwardAPI.Items, "DownwardAPI")
	case s.ServiceAccountToken != nil:
		return withFile(files, s.ServiceAccountToken.Path, "ServiceAccountToken", "")
	case s.ClusterTrustBundle != nil:
		name := ptr.Deref(s.ClusterTrustBundle.Name, ptr.Deref(s.ClusterTrustBundle.SignerName, ""))
		return withFile(files, s.ClusterTrustBundle.Path, "ClusterTrustBundle", name)
	case s.PodCertificate != nil:
		files = withFile(files, s.PodCertificate.CertificateChainPath, "PodCertificate chain", "")
		files = withFile(files, s.PodCertificate.KeyPath, "PodCertificate key", "")
		return withFile(files, s.PodCertificate.CredentialBundlePath, "PodCertificate credential bundle", "")
	}
	return files
}

func withFile(files []file, path, kind, name string) []file {
	if path == "" {
		return files
	}
	return append(files, file{path, kind, name})
}

func withItems(files []file, items []corev1.KeyToPath, kind, name string) []file {
	for i := range items {
		files = withFile(files, items[i].Path, kind, name)
	}
	return files
}

func withDownward(files []file, items []corev1.DownwardAPIVolumeFile, kind string) []file {
	for i := range items {
		files = withFile(files, items[i].Path, kind, "")
	}
	return files
}
