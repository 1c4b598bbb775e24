package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
)

// This file charges quotas for all requests that wait in a namespace together: one write for
// each quota, not for each request.

// charge is what a change uses of one quota in addition.
type charge struct {
	quota   informer.Key
	amounts corev1.ResourceList
}

// claim is what a request wants to be charged for.
type claim struct {
	ctx     context.Context // the request's
	charges []charge        // in the order of their quotas' names
	made    int             // how many of them are in their quotas' status
	leave   []func()        // ends the reservations
	dry     bool
	err     error
	refused bool          // err is that the next charge exceeds its quota
	served  chan struct{} // closed when the fields above are final
}

// serve charges for claims of one namespace, which it leads, in their order. A claim is refused
// as a whole.
func (u *Usage) serve(ctx context.Context, claims []*claim) {
	ctx, stop := whileWanted(ctx, claims)
	defer stop()
	defer settle(claims)
	for len(claims) > 0 {
		for quota, due := nextQuota(claims); len(due) > 0; quota, due = nextQuota(claims) {
			u.reserve(ctx, quota, due)
		}
		claims = refusedTooSoon(claims, u.release(ctx, claims))
	}
}

// whileWanted is a context with ctx's values that lasts until the requests of all claims have ended.
func whileWanted(ctx context.Context, claims []*claim) (wanted context.Context, stop func()) {
	wanted, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var left atomic.Int64
	left.Store(int64(len(claims)))
	var forget []func() bool
	for _, c := range claims {
		forget = append(forget, context.AfterFunc(c.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		}))
	}
	return wanted, func() {
		for _, f := range forget {
			f()
		}
		cancel()
	}
}

// settle makes claims final, also if serving them has panicked: reservations that nobody ends would
// count for ever.
func settle(claims []*claim) {
	for _, c := range claims {
		if c.err == nil && c.made < len(c.charges) {
			c.err = errors.New("charging quotas has failed in another request, which did it for this one, too")
		}
		for _, leave := range c.leave {
			if c.err != nil {
				leave()
			} else {
				context.AfterFunc(c.ctx, leave)
			}
		}
		close(c.served)
	}
}

// refusedTooSoon returns the claims, as if they were new, that were refused by a quota which had been
// charged for others that came to nothing.
func refusedTooSoon(claims []*claim, undone map[informer.Key]bool) (again []*claim) {
	for _, c := range claims {
		if c.refused && undone[c.charges[c.made].quota] {
			c.err, c.refused, c.made = nil, false, 0
			again = append(again, c)
		}
	}
	return again
}

// nextQuota is the first quota by name that is to be charged, and for which claims.
func nextQuota(claims []*claim) (quota informer.Key, due []*claim) {
	for _, c := range claims {
		if c.err != nil || c.made == len(c.charges) {
			continue
		}
		switch next := c.charges[c.made].quota; {
		case len(due) == 0 || next.Name < quota.Name:
			quota, due = next, []*claim{c}
		case next == quota:
			due = append(due, c)
		}
	}
	return quota, due
}

// errNothingReserved ends an update that would store nothing.
var errNothingReserved = errors.New("nothing is reserved")

// reserve makes the next charge of each claim, which is to the same quota.
func (u *Usage) reserve(ctx context.Context, quota informer.Key, claims []*claim) {
	for _, c := range claims {
		if !c.dry {
			c.leave = append(c.leave, u.reservations.add(quota, c.charges[c.made].amounts))
		}
	}
	refused, nothing := make([]error, len(claims)), false
	err := u.updateStatus(ctx, quota, registry.ServerManager, func(q *corev1.ResourceQuota) error {
		nothing = false
		if !isStatusCurrent(q) || u.written.isLowered(q) {
			if err := u.recount(ctx, q, quota); err != nil {
				return err
			}
			for _, c := range claims {
				if !c.dry { // it is in the count already
					subtractAmounts(q.Status.Used, c.charges[c.made].amounts)
				}
			}
		}
		nothing = true
		for i, c := range claims {
			refused[i] = charged(q, c.charges[c.made].amounts, c.dry)
			nothing = nothing && (refused[i] != nil || c.dry)
		}
		if nothing {
			return errNothingReserved
		}
		return nil
	})
	for i, c := range claims {
		switch {
		case err != nil && !nothing:
			c.err = err
		case refused[i] != nil:
			c.err, c.refused = refused[i], true
		default:
			c.made++
		}
	}
}

// charged adds amounts to the usage of a quota, unless they exceed it; if dry, it only says whether
// they would.
func charged(q *corev1.ResourceQuota, amounts corev1.ResourceList, dry bool) (refused error) {
	addAmounts(q.Status.Used, amounts)
	names := exceeded(q.Status.Used, q.Spec.Hard, amounts)
	if len(names) > 0 || dry {
		subtractAmounts(q.Status.Used, amounts)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
		q.Name, formatAmounts(amounts, names), formatAmounts(q.Status.Used, names), formatAmounts(q.Spec.Hard, names))
}

// release undoes what was charged for claims that have failed at another quota, and returns the
// quotas that have room again.
func (u *Usage) release(ctx context.Context, claims []*claim) (undone map[informer.Key]bool) {
	undo := map[informer.Key][]*claim{}
	for _, c := range claims {
		if c.err != nil && !c.dry {
			for _, one := range c.charges[:c.made] {
				undo[one.quota] = append(undo[one.quota], c)
			}
		}
	}
	undone = map[informer.Key]bool{}
	for quota, of := range undo {
		err := u.updateStatus(ctx, quota, registry.ServerManager, func(q *corev1.ResourceQuota) error {
			for _, c := range of {
				i := slices.IndexFunc(c.charges, func(one charge) bool { return one.quota == quota })
				subtractAmounts(q.Status.Used, c.charges[i].amounts)
			}
			return nil
		})
		undone[quota] = err == nil
		for _, c := range of {
			c.err = errors.Join(c.err, err)
		}
	}
	for _, c := range claims {
		if c.err != nil {
			for _, leave := range c.leave {
				leave()
			}
			c.leave = nil
		}
	}
	return undone
}
