package send

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/core"
)

// wrapCreate says what could not be created, in kubectl's words for kinds that
// have a generator.
func wrapCreate(err error, resource core.Resource) error {
	switch resource.Name {
	case core.ConfigMaps.Name:
		return fmt.Errorf("failed to create configmap: %w", err)
	case core.Secrets.Name:
		return fmt.Errorf("failed to create secret %w", err)
	case core.ServiceAccounts.Name:
		return fmt.Errorf("failed to create serviceaccount: %w", err)
	}
	return err
}

// CreateGenerated creates what a generator made from the command line, and prints it.
func (s *Sender) CreateGenerated(ctx context.Context, resource core.Resource, object core.Object) error {
	created, err := s.SendGenerated(ctx, resource, object)
	if err != nil {
		return err
	}
	return s.Print(&s.Printing, s.DryRun.Mark(cmp.Or(s.Operation, "created")), created)
}

// SendGenerated creates what a generator made from the command line, and returns what
// became of it. It keeps the namespace that it has.
func (s *Sender) SendGenerated(ctx context.Context, resource core.Resource, object core.Object) (core.Object, error) {
	namespace := object.GetNamespace()
	if resource.Namespaced && namespace == "" {
		loaded, err := s.Kubeconfig()
		if err != nil && s.DryRun != frame.DryRunClient {
			return nil, err
		}
		if err == nil {
			namespace = loaded.Namespace
			if loaded.Chosen || s.DryRun != frame.DryRunClient {
				object.SetNamespace(namespace)
			}
		}
	}
	s.Record(object)
	if s.SaveConfig {
		var err error
		if object, err = Remembering(object); err != nil {
			return nil, err
		}
	}
	if s.DryRun == frame.DryRunClient {
		return object, nil
	}
	created, err := s.Post(ctx, resource, namespace, object)
	if err != nil {
		return nil, wrapCreate(err, resource)
	}
	return created, nil
}

// Remembering is the object with its configuration in its annotation.
func Remembering(object core.Object) (core.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	out := &unstructured.Unstructured{Object: content}
	return out, threeway.Remember(out)
}
