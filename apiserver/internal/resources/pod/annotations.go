package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// The annotations by which pods named their profiles before there were fields.
// Those of containers end with the container's name.
const (
	seccompPodAnnotation    = "seccomp.security.alpha.kubernetes.io/pod"
	seccompContainerPrefix  = "container.seccomp.security.alpha.kubernetes.io/"
	appArmorContainerPrefix = "container.apparmor.security.beta.kubernetes.io/"
)

// localhost is the type of profiles on the node.
const localhost = "Localhost"

// profile is a profile named by an annotation.
type profile struct{ kind, localhost string }

// profileOf parses an annotation; ok is false if it is invalid.
func profileOf(text string) (p profile, ok bool) {
	switch path, found := strings.CutPrefix(text, "localhost/"); {
	case found:
		return profile{localhost, path}, true
	case text == "runtime/default":
		return profile{kind: "RuntimeDefault"}, true
	case text == "unconfined":
		return profile{kind: "Unconfined"}, true
	}
	return profile{}, false
}

// allContainers are a pod's containers with their paths.
func allContainers(spec *corev1.PodSpec, at *field.Path) iter.Seq2[*corev1.Container, *field.Path] {
	return func(yield func(*corev1.Container, *field.Path) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i], at.Child("initContainers").Index(i)) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i], at.Child("containers").Index(i)) {
				return
			}
		}
	}
}

// fillAppArmor sets containers' profiles from annotations (KEP-24), and warns users
// that there are fields for it, even if the pod is then refused.
func fillAppArmor(ctx context.Context, pod *core.Pod) {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows || !hasPrefix(pod.Annotations, appArmorContainerPrefix) {
		return
	}
	for c := range allContainers(&pod.Spec, nil) {
		value, named := pod.Annotations[appArmorContainerPrefix+c.Name]
		if !named || c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
			continue
		}
		p, ok := profileOf(value)
		if of := pod.Spec.SecurityContext; ok && of != nil && sameAppArmor(of.AppArmorProfile, p) {
			continue
		}
		request.Warn(ctx, annotationWarning(podMeta, appArmorContainerPrefix+c.Name, outdatedAppArmor))
		if !ok || p.kind == localhost && (p.localhost == "" || len(validateAppArmor(p.field(), nil)) > 0) {
			continue
		}
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.AppArmorProfile = p.field()
	}
}

func hasPrefix(annotations map[string]string, prefix string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// field is the profile in the form of the field that replaced the annotation.
func (p profile) field() *corev1.AppArmorProfile {
	f := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileType(p.kind)}
	if p.localhost != "" {
		f.LocalhostProfile = &p.localhost
	}
	return f
}

func sameAppArmor(f *corev1.AppArmorProfile, p profile) bool {
	return f != nil && string(f.Type) == p.kind && (f.LocalhostProfile == nil || *f.LocalhostProfile == p.localhost)
}

// validateAnnotations validates the annotations of a pod, or of a pod template,
// that mean something to Kubernetes.
func validateAnnotations(annotations map[string]string, spec *corev1.PodSpec, at, specAt *field.Path) field.ErrorList {
	var errs field.ErrorList
	ofContainers := false
	for key, value := range annotations {
		ofContainers = ofContainers || strings.HasPrefix(key, seccompContainerPrefix) || strings.HasPrefix(key, appArmorContainerPrefix)
		switch {
		case key == core.ConfigMirrorAnnotation && spec.NodeName == "":
			errs = append(errs, field.Invalid(at.Key(key), value, "must set spec.nodeName if mirror pod annotation is set"))
		case key == corev1.PodDeletionCost:
			// Only the canonical form of a number is accepted, without a plus or leading zeros.
			if _, err := strconv.ParseInt(value, 10, 32); err != nil || value[0] == '+' || value[0] == '0' && value != "0" {
				errs = append(errs, field.Invalid(at.Key(key), value, "must be a 32bit integer"))
			}
		case key == corev1.TolerationsAnnotationKey && value != "":
			var tolerations []corev1.Toleration
			if err := json.Unmarshal([]byte(value), &tolerations); err != nil {
				errs = append(errs, field.Invalid(at, key, err.Error()))
			}
			errs = append(errs, check.Tolerations(tolerations, at.Child(key))...)
		case key == seccompPodAnnotation:
			errs = append(errs, validateSeccompAnnotation(value, at.Child(key))...)
			if sc := spec.SecurityContext; sc != nil {
				errs = append(errs, matchSeccomp(sc.SeccompProfile, value, specAt.Child("securityContext"))...)
			}
		case strings.HasPrefix(key, seccompContainerPrefix):
			errs = append(errs, validateSeccompAnnotation(value, at.Child(key))...)
		case strings.HasPrefix(key, appArmorContainerPrefix):
			errs = append(errs, validateAppArmorAnnotation(key, value, spec, at.Key(key))...)
		}
	}
	if !ofContainers {
		return errs
	}
	for c, path := range allContainers(spec, specAt) {
		sc, path := c.SecurityContext, path.Child("securityContext")
		if sc == nil {
			continue
		}
		if value, ok := annotations[seccompContainerPrefix+c.Name]; ok {
			errs = append(errs, matchSeccomp(sc.SeccompProfile, value, path)...)
		}
		if value, ok := annotations[appArmorContainerPrefix+c.Name]; ok && sc.AppArmorProfile != nil {
			profile := sc.AppArmorProfile
			errs = append(errs,
				matchProfile(string(profile.Type), profile.LocalhostProfile, value, "apparmor", path.Child("appArmorProfile"))...)
		}
	}
	return errs
}

func validateSeccompAnnotation(value string, at *field.Path) field.ErrorList {
	p, ok := profileOf(value)
	if !ok && value != "docker/default" {
		return field.ErrorList{field.Invalid(at, value, "must be a valid seccomp profile")}
	}
	return descendingPath(p.localhost, at)
}

func validateAppArmorAnnotation(key, value string, spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	name, found := strings.TrimPrefix(key, appArmorContainerPrefix), false
	for c := range allContainers(spec, nil) {
		found = found || c.Name == name
	}
	if !found {
		errs = append(errs, field.Invalid(at, name, "container not found"))
	}
	if _, ok := profileOf(value); !ok && value != "" {
		errs = append(errs, field.Invalid(at, value, fmt.Sprintf("invalid AppArmor profile name: %q", value)))
	}
	return errs
}

func matchSeccomp(f *corev1.SeccompProfile, annotation string, at *field.Path) field.ErrorList {
	if f == nil {
		return nil
	}
	return matchProfile(string(f.Type), f.LocalhostProfile, annotation, "seccomp", at.Child("seccompProfile"))
}

// matchProfile refuses a field that differs from the annotation.
func matchProfile(kind string, localhost *string, annotation, what string, at *field.Path) field.ErrorList {
	p, ok := profileOf(annotation)
	switch {
	case !ok:
		return nil
	case p.kind != kind:
		return field.ErrorList{field.Forbidden(at.Child("type"), what+" type in annotation and field must match")}
	case localhost != nil && *localhost != p.localhost:
		return field.ErrorList{field.Forbidden(at.Child("localhostProfile"), what+" profile in annotation and field must match")}
	}
	return nil
}
