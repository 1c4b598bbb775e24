package authn

import (
	"context"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/request"
)

// Remark is what there is to say of a token: to auditors, under a key, and to
// the client.
type Remark struct{ Key, Value, Warning string }

type remarksKey struct{}

// Say says it in the request of ctx, and, where the token is remembered, in
// every request that it is remembered for.
func Say(ctx context.Context, r Remark) {
	if said, _ := ctx.Value(remarksKey{}).(*[]Remark); said != nil {
		*said = append(*said, r)
	}
	if r.Key != "" {
		audit.Annotate(ctx, r.Key, r.Value)
	}
	if r.Warning != "" {
		request.Warn(ctx, r.Warning)
	}
}

// listening has what is said kept in said too.
func listening(ctx context.Context, said *[]Remark) context.Context {
	return context.WithValue(ctx, remarksKey{}, said)
}
