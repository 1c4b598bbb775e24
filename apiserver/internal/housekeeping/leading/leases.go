package leading

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// leases reads and writes the election's Lease without HTTP: a server must not
// depend on being reachable by itself.
type leases struct {
	store           registry.Resource
	namespace, name string
}

func (l leases) decode(e registry.Encoded, err error) (*core.Lease, error) {
	if err != nil {
		return nil, err
	}
	obj, err := l.store.Decode(e)
	if err != nil {
		return nil, err
	}
	return obj.(*core.Lease), nil
}

// Get implements leader.Leases.
func (l leases) Get(ctx context.Context) (*core.Lease, error) {
	return l.decode(l.store.Get(ctx, l.namespace, l.name, ""))
}

// Create implements leader.Leases.
func (l leases) Create(ctx context.Context, lease *core.Lease) (*core.Lease, error) {
	return l.decode(l.store.Create(ctx, lease.DeepCopy(), registry.Admission{}, &metav1.CreateOptions{}))
}

// Update implements leader.Leases.
func (l leases) Update(ctx context.Context, lease *core.Lease) (*core.Lease, error) {
	e, _, err := l.store.Update(ctx, registry.Target{Namespace: l.namespace, Name: l.name},
		func(core.Object) (core.Object, error) { return lease.DeepCopy(), nil }, registry.Admission{}, &metav1.UpdateOptions{})
	return l.decode(e, err)
}
