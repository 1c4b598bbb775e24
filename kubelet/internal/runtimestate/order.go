package runtimestate

import (
	"cmp"
	"slices"
	"time"
)

// creation is when something was made, of what was made one after the other under a
// name: how many there were before it, and the machine's clock then.
type creation struct {
	name    string
	attempt int64
	at      time.Time
}

// newestFirst sorts by time, but never puts a later attempt under a name after
// an earlier one: the machine's clock may have been set back in between. To
// mistake the older for the newer would mean to replace it again and again.
func newestFirst[T any](made []T, of func(T) creation) {
	type placed struct {
		creation
		one T
	}
	all := make([]placed, len(made))
	for i, one := range made {
		all[i] = placed{of(one), one}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.attempt, b.attempt))
	})
	for i := 1; i < len(all); i++ {
		if last := all[i-1]; all[i].name == last.name && all[i].attempt > last.attempt && all[i].at.Before(last.at) {
			all[i].at = last.at
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.attempt, a.attempt))
	})
	for i := range all {
		made[i] = all[i].one
	}
}

func (s *SandboxStatus) creation() creation {
	return creation{attempt: int64(s.Attempt), at: s.CreatedAt}
}

func (c *ContainerStatus) creation() creation {
	return creation{c.Name, int64(c.RestartCount), c.CreatedAt}
}

func (c *RunningContainer) creation() creation {
	return creation{c.Name, int64(c.Attempt), c.CreatedAt}
}
