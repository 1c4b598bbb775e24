package send

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/core"
)

// RememberApplied writes what is applied into the annotation that later applies read.
func RememberApplied(object *unstructured.Unstructured) error { return threeway.Remember(object) }

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

// CreateGenerated creates what a generator made from the command line.
func (s *Sender) CreateGenerated(ctx context.Context, resource core.Resource, object core.Object) error {
	namespace := ""
	if resource.Namespaced {
		loaded, err := s.Kubeconfig()
		if err != nil && s.DryRun != frame.DryRunClient {
			return err
		}
		if err == nil {
			namespace = loaded.Namespace
			if loaded.Chosen || s.DryRun != frame.DryRunClient {
				object.SetNamespace(namespace)
			}
		}
	}
	s.Record(object)
	operation := s.Operation
	if operation == "" {
		operation = "created"
	}
	if s.SaveConfig {
		var err error
		if object, err = Remembering(object); err != nil {
			return err
		}
	}
	if s.DryRun == frame.DryRunClient {
		return s.Print(&s.Printing, s.DryRun.Mark(operation), object)
	}
	created, err := s.Post(ctx, resource, namespace, object)
	if err != nil {
		return wrapCreate(err, resource)
	}
	return s.Print(&s.Printing, s.DryRun.Mark(operation), created)
}

// Remembering is the object with its configuration in its annotation.
func Remembering(object core.Object) (core.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	out := &unstructured.Unstructured{Object: content}
	return out, RememberApplied(out)
}
