package leader

import (
	"context"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// apiLeases keeps the Lease in the API. An update carries the resourceVersion
// that was read: if two write at once, one gets a conflict.
type apiLeases struct {
	resource rest.Resource
	name     string
}

func (l apiLeases) Get(ctx context.Context) (*core.Lease, error) {
	lease := &core.Lease{}
	return lease, l.resource.Get(ctx, l.name, lease)
}

func (l apiLeases) Create(ctx context.Context, lease *core.Lease) (*core.Lease, error) {
	created := &core.Lease{}
	return created, l.resource.Create(ctx, lease, created)
}

func (l apiLeases) Update(ctx context.Context, lease *core.Lease) (*core.Lease, error) {
	updated := &core.Lease{}
	return updated, l.resource.Update(ctx, l.name, lease, updated)
}
