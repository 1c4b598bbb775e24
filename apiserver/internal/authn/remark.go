package authn

import (
	"context"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/request"
)

// Remark is a note about a token: for the audit, under a key, and for the
// client.
type Remark struct{ Key, Value, Warning string }

type remarksKey struct{}

// AddRemark adds r to the request of ctx and, if the token is cached, to every
// request answered from the cache.
func AddRemark(ctx context.Context, r Remark) {
	if remarks, _ := ctx.Value(remarksKey{}).(*[]Remark); remarks != nil {
		*remarks = append(*remarks, r)
	}
	if r.Key != "" {
		audit.Annotate(ctx, r.Key, r.Value)
	}
	if r.Warning != "" {
		request.Warn(ctx, r.Warning)
	}
}

// withRemarks returns a context whose remarks are also added to remarks.
func withRemarks(ctx context.Context, remarks *[]Remark) context.Context {
	return context.WithValue(ctx, remarksKey{}, remarks)
}
