// Package runtimeclass follows the cluster's runtime classes, which name the handlers
// that run pods (Kubernetes docs, "Runtime Class").
//
// The kubelet runs it beside the source of pods; the pod runtime asks it. It changes
// nothing in the cluster.
package runtimeclass

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// Manager has the runtime classes, as far as known from the API server.
type Manager struct {
	classes   *watch.Store[*nodev1.RuntimeClass]
	reflector *watch.Reflector[*nodev1.RuntimeClass]
}

// NewManager returns a Manager without classes; Run fills it.
func NewManager(client *rest.Client, clock clock.Clock, logger *zap.Logger) *Manager {
	m := &Manager{classes: watch.NewStore[*nodev1.RuntimeClass](nil)}
	m.reflector = watch.NewReflector(client.Resource(core.RuntimeClasses, ""), func() *nodev1.RuntimeClass { return new(nodev1.RuntimeClass) },
		m.classes,
		watch.Options{Clock: clock, Logger: logger})
	return m
}

// Run follows the classes until ctx ends.
func (m *Manager) Run(ctx context.Context) error { return m.reflector.Run(ctx) }

// Handler returns the runtime's handler of a class.
func (m *Manager) Handler(class string) (string, error) {
	found, ok := m.classes.Get("", class)
	if !ok {
		return "", fmt.Errorf("RuntimeClass %q not found", class)
	}
	return found.Handler, nil
}
