// Package podnodeselector keeps the pods of a namespace on the nodes that the
// namespace's annotation or the cluster's configuration names. It is off by
// default.
package podnodeselector

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/proto/core"
)

const (
	// Name is upstream's name.
	Name = "PodNodeSelector"

	annotation = "scheduler.alpha.kubernetes.io/node-selector"
	// clusterDefault is the configuration's key for the selector of namespaces
	// without an annotation; all other keys are namespaces, with the only
	// selectors that pods there may have.
	clusterDefault = "clusterDefaultNodeSelector"
)

// Namespaces finds namespaces; lookup.Objects does.
type Namespaces interface {
	Get(ctx context.Context, namespace, name string) (*core.Namespace, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnCreates
	namespaces Namespaces
	configured map[string]labels.Set
}

// New returns the configured plugin.
func New(namespaces Namespaces, files configuration.Files) (*Plugin, error) {
	var file struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	if _, err := files.DecodeBare(Name, &file); err != nil {
		return nil, err
	}
	p := &Plugin{namespaces: namespaces, configured: map[string]labels.Set{}}
	for namespace, text := range file.Selectors {
		selector, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			return nil, fmt.Errorf("configuration of %s: %s: %w", Name, namespace, err)
		}
		p.configured[namespace] = selector
	}
	return p, nil
}

var (
	errConflict  = errors.New("pod node label selector conflicts with its namespace node label selector")
	errNotListed = errors.New("pod node label selector labels conflict with its namespace whitelist")
)

// Admit merges the namespace's selector into the pod's.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, selector, err := p.podAndSelector(ctx, a)
	if err != nil || pod == nil {
		return err
	}
	if labels.Conflicts(selector, pod.Spec.NodeSelector) {
		return errConflict
	}
	if len(selector) > 0 && pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = make(map[string]string, len(selector))
	}
	maps.Copy(pod.Spec.NodeSelector, selector)
	return nil
}

// Validate checks the pod's final selector.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, selector, err := p.podAndSelector(ctx, a)
	if err != nil || pod == nil {
		return err
	}
	if labels.Conflicts(selector, pod.Spec.NodeSelector) {
		return errConflict
	}
	if allowed := p.configured[a.Namespace]; len(allowed) > 0 {
		for key, value := range pod.Spec.NodeSelector {
			if have, ok := allowed[key]; !ok || have != value {
				return errNotListed
			}
		}
	}
	return nil
}

// podAndSelector returns the new pod, if the object is one, and its namespace's selector.
func (p *Plugin) podAndSelector(ctx context.Context, a *admission.Attributes) (*core.Pod, labels.Set, error) {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil, nil, nil
	}
	namespace, err := p.namespaces.Get(ctx, "", a.Namespace)
	if err != nil {
		return nil, nil, err
	}
	text, ok := namespace.Annotations[annotation]
	if !ok {
		return pod, p.configured[clusterDefault], nil
	}
	selector, err := labels.ConvertSelectorToLabelsMap(text)
	return pod, selector, err
}
