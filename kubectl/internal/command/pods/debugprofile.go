package pods

import (
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// keepOptions is what a copy of a pod keeps from the original.
type keepOptions struct{ labels, annotations, liveness, readiness, startup, initContainers bool }

func (k *keepOptions) add(fs *pflag.FlagSet) {
	const copied = " (This flag only works when used with '--copy-to')"
	fs.BoolVar(&k.labels, "keep-labels", false, "If true, keep the original pod labels."+copied)
	fs.BoolVar(&k.annotations, "keep-annotations", false, "If true, keep the original pod annotations."+copied)
	fs.BoolVar(&k.liveness, "keep-liveness", false, "If true, keep the original pod liveness probes."+copied)
	fs.BoolVar(&k.readiness, "keep-readiness", false, "If true, keep the original pod readiness probes."+copied)
	fs.BoolVar(&k.startup, "keep-startup", false, "If true, keep the original startup probes."+copied)
	fs.BoolVar(&k.initContainers, "keep-init-containers", true, "Run the init containers for the pod."+copied)
}

// strip removes from a copy what is not to be kept, such as probes, which would end
// a pod that is broken. The profile legacy removes only the labels.
func (k keepOptions) strip(pod *core.Pod, legacy bool) {
	if legacy {
		pod.Labels = nil
		return
	}
	if !k.labels {
		pod.Labels = nil
	}
	if !k.annotations {
		pod.Annotations = nil
	}
	if !k.initContainers {
		pod.Spec.InitContainers = nil
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !k.liveness {
			c.LivenessProbe = nil
		}
		if !k.readiness {
			c.ReadinessProbe = nil
		}
		if !k.startup {
			c.StartupProbe = nil
		}
	}
}

// debugProfile is what --profile means.
type debugProfile struct {
	// onNode sets what a pod that debugs a node sees: the node's namespaces and files.
	onNode struct{ namespaces, files bool }
	// grant gives a container its rights, in addition to those it has.
	grant func(*corev1.SecurityContext) *corev1.SecurityContext
}

func (d *debugOptions) chosenProfile() (debugProfile, error) {
	var p debugProfile
	capable := func(names ...corev1.Capability) {
		p.grant = func(s *corev1.SecurityContext) *corev1.SecurityContext {
			if s.Capabilities == nil {
				s.Capabilities = &corev1.Capabilities{}
			}
			s.Capabilities.Add = append(s.Capabilities.Add, names...)
			return s
		}
	}

	switch d.profile {
	case "legacy":
		p.onNode.namespaces, p.onNode.files = true, true
	case "general":
		p.onNode.namespaces, p.onNode.files = true, true
		capable("SYS_PTRACE")
	case "netadmin":
		p.onNode.namespaces = true
		capable("NET_ADMIN", "NET_RAW")
	case "sysadmin":
		p.onNode.namespaces, p.onNode.files = true, true
		p.grant = func(s *corev1.SecurityContext) *corev1.SecurityContext { s.Privileged = new(true); return s }
	case "baseline":
		p.grant = func(*corev1.SecurityContext) *corev1.SecurityContext { return nil }
	case "restricted":
		p.grant = func(*corev1.SecurityContext) *corev1.SecurityContext {
			return &corev1.SecurityContext{
				RunAsNonRoot:             new(true),
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
		}
	default:
		return p, fmt.Errorf("unknown profile: %s", d.profile)
	}
	return p, nil
}

// applyTo applies the profile to a container.
func (p debugProfile) applyTo(container *corev1.Container) {
	if p.grant == nil {
		return
	}
	rights := container.SecurityContext
	if rights == nil {
		rights = &corev1.SecurityContext{}
	}
	container.SecurityContext = p.grant(rights)
}

// warnUnprivileged warns about a container whose rights are of no use, because the
// pod's user is not root.
func (d *debugOptions) warnUnprivileged(pod *core.Pod, container *corev1.Container) {
	whole, own := pod.Spec.SecurityContext, container.SecurityContext
	if own == nil || whole == nil || ptr.Deref(whole.RunAsUser, 0) == 0 || ptr.Equal(own.RunAsUser, new(int64(0))) {
		return
	}
	if ptr.Deref(own.Privileged, false) || own.Capabilities != nil && len(own.Capabilities.Add) > 0 {
		d.Warn(`Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may not work. ` +
			`Please consider using "--custom" with a custom profile that specifies "securityContext.runAsUser: 0".`)
	}
}
