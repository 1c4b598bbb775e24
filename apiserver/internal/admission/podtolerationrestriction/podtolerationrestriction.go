package podtolerationrestriction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/proto/core"
)

const (
	// Name is upstream's name.
	Name = "PodTolerationRestriction"

	defaultsAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedAnnotation  = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// Namespaces finds namespaces; lookup.Objects does.
type Namespaces interface {
	Get(ctx context.Context, namespace, name string) (*core.Namespace, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	namespaces Namespaces
	// bestEffort reports whether a pod's QoS class is BestEffort.
	bestEffort func(*core.PodSpec) bool
	cluster    settings
}

// settings are those of a namespace or, if it has none, of the cluster.
type settings struct {
	Default []corev1.Toleration `json:"default"`
	Allowed []corev1.Toleration `json:"whitelist"`
}

// New returns the configured plugin.
func New(namespaces Namespaces, bestEffort func(*core.PodSpec) bool, files configuration.Files) (*Plugin, error) {
	p := &Plugin{namespaces: namespaces, bestEffort: bestEffort}
	_, err := files.Decode(Name, configuration.Kind{
		Kind: "Configuration", Versions: []string{"podtolerationrestriction.admission.k8s.io/v1alpha1"},
	}, &p.cluster)
	return p, err
}

// Admit merges the namespace's tolerations into the pod's.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, s, err := p.podAndSettings(ctx, a)
	if err != nil || pod == nil {
		return err
	}
	if a.Operation == admission.Create && len(s.Default) > 0 {
		pod.Spec.Tolerations = merge(pod.Spec.Tolerations, s.Default)
	}
	if !p.bestEffort(&pod.Spec) {
		pod.Spec.Tolerations = merge(pod.Spec.Tolerations, []corev1.Toleration{
			{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		})
	}
	return check(pod, s)
}

// Validate checks the pod's final tolerations.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, s, err := p.podAndSettings(ctx, a)
	if err != nil || pod == nil {
		return err
	}
	return check(pod, s)
}

var errNotListed = errors.New("pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist")

func check(pod *core.Pod, s settings) error {
	if len(s.Allowed) == 0 {
		return nil
	}
	allowed := newIndex(s.Allowed)
	for i := range pod.Spec.Tolerations {
		if !allowed.covers(&pod.Spec.Tolerations[i]) {
			return errNotListed
		}
	}
	return nil
}

// podAndSettings returns the pod, if the object is one, and its namespace's settings.
func (p *Plugin) podAndSettings(ctx context.Context, a *admission.Attributes) (*core.Pod, settings, error) {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil, settings{}, nil
	}
	namespace, err := p.namespaces.Get(ctx, "", a.Namespace)
	if err != nil {
		return nil, settings{}, err
	}
	s := p.cluster
	for key, into := range map[string]*[]corev1.Toleration{defaultsAnnotation: &s.Default, allowedAnnotation: &s.Allowed} {
		text, ok := namespace.Annotations[key]
		if !ok {
			continue
		}
		*into = nil
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return nil, settings{}, fmt.Errorf("annotation %s of namespace %s: %w", key, a.Namespace, err)
		}
	}
	return pod, s, nil
}
