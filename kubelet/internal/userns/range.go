package userns

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"
)

const (
	// block is what every range is a multiple of, in size and place, so that ids
	// of two pods, or of a pod and the host, differ by more than their last part.
	block = 1 << 16
	// last is the end of the ids for pods: the kernel does not use the very last
	// id, so its whole block is left out.
	last = 1<<32 - block

	// owner is whose subordinate ids the administrator gives to pods.
	owner = "kubelet"

	getsubidsTimeout = 10 * time.Second
)

// Range is a number of ids that follow each other.
type Range struct {
	First, Count int64
}

func (r Range) end() int64 { return r.First + r.Count }

func (r Range) overlaps(o Range) bool { return r.First < o.end() && o.First < r.end() }

// Configured are the ids that the administrator set aside for pods: the
// subordinate ids of the user kubelet, as getsubids reports them. Without that
// user or program, pods get any ids except the host's own, the first 65,536.
func Configured(ctx context.Context) (Range, error) {
	if _, err := user.Lookup(owner); err != nil {
		if _, ok := errors.AsType[user.UnknownUserError](err); ok {
			return everything(), nil
		}
		return Range{}, fmt.Errorf("looking for the user %s, whose subordinate ids are for pods: %w", owner, err)
	}
	program, err := exec.LookPath("getsubids")
	if err != nil {
		return everything(), nil
	}
	users, err := getsubids(ctx, program, owner)
	if err != nil {
		return Range{}, err
	}
	groups, err := getsubids(ctx, program, "-g", owner)
	if err != nil {
		return Range{}, err
	}
	if users != groups {
		return Range{}, fmt.Errorf("the subordinate user ids of %s (%d from %d) and its group ids (%d from %d) must be the same",
			owner, users.Count, users.First, groups.Count, groups.First)
	}
	return users, nil
}

func everything() Range { return Range{First: block, Count: last - block} }

func getsubids(ctx context.Context, program string, arguments ...string) (Range, error) {
	ctx, cancel := context.WithTimeout(ctx, getsubidsTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, arguments...).Output()
	if err != nil {
		return Range{}, fmt.Errorf("%s %s: %w", program, strings.Join(arguments, " "), err)
	}
	r, err := parse(string(out))
	if err != nil {
		return Range{}, fmt.Errorf("%s %s: %w", program, strings.Join(arguments, " "), err)
	}
	return r, nil
}

// parse reads getsubids' output, "0: kubelet 65536 7208960": exactly one range.
func parse(out string) (Range, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 1 {
		return Range{}, fmt.Errorf("%d ranges; exactly one is supported", len(lines))
	}
	fields := strings.Fields(lines[0])
	if len(fields) != 4 {
		return Range{}, fmt.Errorf("%q is not of the form \"0: user first count\"", lines[0])
	}
	first, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return Range{}, fmt.Errorf("first id: %w", err)
	}
	count, err := strconv.ParseUint(fields[3], 10, 32)
	if err != nil {
		return Range{}, fmt.Errorf("count of ids: %w", err)
	}
	return Range{First: int64(first), Count: int64(count)}, nil
}

// Check returns what is wrong with a range for maxPods pods of perPod ids each
// (Kubernetes docs, "User Namespaces").
func (r Range) Check(perPod, maxPods int64) error {
	switch {
	case perPod <= 0 || perPod%block != 0 || perPod >= last:
		return fmt.Errorf("userNamespaces.idsPerPod: %d is not a multiple of %d below 2^32", perPod, block)
	case r.First < block || r.First%block != 0:
		return fmt.Errorf("the subordinate ids of %s begin at %d; it must be a multiple of %d, and not 0", owner, r.First, block)
	case r.Count%block != 0:
		return fmt.Errorf("the subordinate ids of %s are %d; it must be a multiple of %d", owner, r.Count, block)
	case r.end() > 1<<32:
		return fmt.Errorf("the subordinate ids of %s (%d from %d) go beyond 2^32", owner, r.Count, r.First)
	case r.Count/perPod < maxPods:
		return fmt.Errorf("the subordinate ids of %s are %d; %d pods with %d each need %d", owner, r.Count, maxPods, perPod, maxPods*perPod)
	}
	return nil
}
