package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/rest"
)

// prunable are the kinds that --prune looks through where --prune-allowlist names
// none: kubectl's.
var prunable = []string{
	"core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/PersistentVolumeClaim", "core/v1/Pod", "core/v1/ReplicationController",
	"core/v1/Secret", "core/v1/Service", "batch/v1/Job", "batch/v1/CronJob", "networking.k8s.io/v1/Ingress",
	"apps/v1/DaemonSet", "apps/v1/Deployment", "apps/v1/ReplicaSet", "apps/v1/StatefulSet", "core/v1/Namespace", "core/v1/PersistentVolume",
}

// pruneOptions is what `kctl apply --prune` has to know.
type pruneOptions struct {
	wanted     bool
	all        bool
	allowlist  []string
	kinds      []discover.Resource
	uids       map[types.UID]bool // of what was applied
	namespaces []string           // in which it is
}

func (p *pruneOptions) check(labels string) error {
	switch {
	case p.all && labels != "":
		return errors.New("cannot set --all and --selector at the same time")
	case p.wanted && !p.all && labels == "":
		return errors.New("all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If " +
			"you did not mean to prune all resources, specify a label selector")
	}
	for _, text := range p.allowlist {
		if _, err := kindOf(text); err != nil {
			return err
		}
	}
	return nil
}

// kindOf reads GROUP/VERSION/KIND.
func kindOf(text string) (schema.GroupVersionKind, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return schema.GroupVersionKind{}, fmt.Errorf("invalid GroupVersionKind format: %s, please follow <group/version/kind>", text)
	}
	if parts[0] == "core" {
		parts[0] = ""
	}
	return schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, nil
}

// recordApplied notes what was applied.
func (p *pruneOptions) recordApplied(t lookup.Target, uid types.UID) {
	if p.uids == nil {
		p.uids = map[types.UID]bool{}
	}
	p.uids[uid] = true
	if t.Namespaced && !slices.Contains(p.namespaces, t.Namespace) {
		p.namespaces = append(p.namespaces, t.Namespace)
	}
}

// findKinds finds the kinds to look through, before anything is changed: an unknown
// one would leave the work half done.
func (p *pruneOptions) findKinds(ctx context.Context, discovery *discover.Discovery) error {
	kinds := p.allowlist
	if len(kinds) == 0 {
		kinds = prunable
	}
	for _, text := range kinds {
		kind, err := kindOf(text)
		if err != nil {
			return err
		}
		resource, err := discovery.OfKind(ctx, kind)
		var missing *discover.NoKindError
		if errors.As(err, &missing) && len(p.allowlist) == 0 {
			continue // not every server serves all of them
		}
		if err != nil {
			return err
		}
		p.kinds = append(p.kinds, resource)
	}
	return nil
}

// prune deletes what was applied before, is selected or in the set, and was not applied
// now.
func (a *applyOptions) prune(ctx context.Context) error {
	if a.set.ref != "" {
		return a.pruneSet(ctx)
	}
	return a.forEachPruned(ctx, func(t lookup.Target, object *unstructured.Unstructured) error {
		t.Object = object
		return a.pruneOne(ctx, t)
	})
}

func (a *applyOptions) pruneOne(ctx context.Context, t lookup.Target) error {
	client, err := a.Server()
	if err != nil {
		return err
	}
	if a.DryRun != frame.DryRunClient {
		if _, err := removeObject(ctx, t.In(client), t.ObjectName, a.deleter().options()); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pruning: %w", err)
		}
	}
	if !a.Chosen() {
		fmt.Fprintln(a.Out, printer.ObjectName(t.GVK(), t.ObjectName), a.DryRun.Mark("pruned"))
		return nil
	}
	p, err := printer.New(a.Printing.Options) // a new one for each: nothing divides them
	if err != nil {
		return err
	}
	return p.Print(a.Out, t.Object)
}

// forEachPruned calls do with each object that was applied before, is selected,
// and was not recorded by pruned.recordApplied.
func (a *applyOptions) forEachPruned(ctx context.Context, do func(lookup.Target, *unstructured.Unstructured) error) error {
	for _, resource := range a.pruned.kinds {
		namespaces := []string{""}
		if resource.Namespaced {
			namespaces = a.pruned.namespaces
		}
		for _, namespace := range namespaces {
			if err := a.forgottenOf(ctx, lookup.Target{Resource: resource, Namespace: namespace}, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applyOptions) forgottenOf(ctx context.Context, t lookup.Target, do func(lookup.Target, *unstructured.Unstructured) error) error {
	client, err := a.Server()
	if err != nil {
		return err
	}
	found, err := lookup.List(ctx, t.In(client), lookup.ChunkSize, rest.LabelSelector(a.Labels))
	if err != nil {
		return fmt.Errorf("listing what may be pruned: %w", err)
	}
	for i := range found.Items {
		object := &found.Items[i]
		if _, applied := object.GetAnnotations()[threeway.LastApplied]; !applied || a.pruned.uids[object.GetUID()] {
			continue
		}
		t.ObjectName = object.GetName()
		if err := do(t, object); err != nil {
			return err
		}
	}
	return nil
}

// deleter is how apply deletes: to prune, and with --force.
func (a *applyOptions) deleter() *deleteOptions {
	return &deleteOptions{CLI: a.CLI, dryRun: a.DryRun, grace: a.grace, cascade: a.cascade, timeout: a.timeout, wait: true}
}

// replace deletes an object that can't be changed as wanted, and recreates it: as
// wanted, or, if that is refused, as it was.
func (a *applyOptions) replace(ctx context.Context, t lookup.Target, was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, err := a.Server()
	if err != nil {
		return nil, err
	}
	d := a.deleter()
	uid, err := removeObject(ctx, t.In(client), t.ObjectName, d.options())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		if err := d.waitGone(ctx, []deletedObject{{t, uid}}); err != nil {
			return nil, err
		}
	}
	made, err := a.Post(ctx, t.Resource.Resource, t.Namespace, t.Object)
	if err != nil {
		was.SetUID("")
		if _, lost := a.Post(ctx, t.Resource.Resource, t.Namespace, was); lost != nil {
			return nil, fmt.Errorf("making it anew: %w; and it could not be made as it was before: %w", err, lost)
		}
	}
	return made, err
}
