package change

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/discover"
	"kctl/proto/core"
	"kctl/proto/release"
	"kctl/proto/rest"
)

// The labels and annotations of ApplySets (KEP-3659, "ApplySet Specification").
const (
	setID         = "applyset.kubernetes.io/id"      // of the parent
	setMember     = "applyset.kubernetes.io/part-of" // of members: the parent's id
	setTool       = "applyset.kubernetes.io/tooling"
	setKinds      = "applyset.kubernetes.io/contains-group-kinds"
	setResources  = "applyset.kubernetes.io/contains-group-resources" // what older versions of kubectl wrote instead
	setNamespaces = "applyset.kubernetes.io/additional-namespaces"
	setParentType = "applyset.kubernetes.io/is-parent-type" // of definitions
)

// setToolName is kubectl's, so that each of the two accepts the other's sets.
const setToolName = "kubectl"

// applySetWanted says whether the flag exists: as in kubectl, only if the environment
// asks for it.
func applySetWanted() bool { return strings.EqualFold(os.Getenv("KUBECTL_APPLYSET"), "true") }

// applySet is what `--applyset` names: a parent object, which records in which
// namespaces there are objects of which kinds that were applied together.
type applySet struct {
	ref           string // what the user said; "" for none
	parent        lookup.Target
	before, after applySetMembers
}

// applySetMembers are where objects of a set are.
type applySetMembers struct {
	kinds      map[schema.GroupKind]discover.Resource
	namespaces map[string]bool
}

func newMembers() applySetMembers {
	return applySetMembers{map[schema.GroupKind]discover.Resource{}, map[string]bool{}}
}

// resources are those of the kinds, in the order of the kinds' names.
func (m applySetMembers) resources() []discover.Resource {
	return slices.SortedFunc(maps.Values(m.kinds), func(x, y discover.Resource) int {
		return strings.Compare(x.GVK().GroupKind().String(), y.GVK().GroupKind().String())
	})
}

// id identifies the set and marks its members; it is derived from the parent's identity.
func (s *applySet) id() string {
	parent := strings.Join([]string{s.parent.ObjectName, s.parent.Namespace, s.parent.Kind, s.parent.Group}, ".")
	sum := sha256.Sum256([]byte(parent))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

func (s *applySet) name() string {
	return fmt.Sprintf("%s.%s/%s", s.parent.Name, s.parent.Group, s.parent.ObjectName)
}

// find works out the parent: [RESOURCE][.GROUP]/NAME, or a secret's name.
func (s *applySet) find(ctx context.Context, c *frame.CLI) error {
	discovery, err := c.Discovery()
	if err != nil {
		return err
	}
	target, err := c.Kubeconfig()
	if err != nil {
		return err
	}
	kind, name, typed := strings.Cut(s.ref, "/")
	if !typed {
		kind, name = core.Secrets.Name, s.ref
	}
	if name == "" {
		return fmt.Errorf("invalid parent reference %q: name cannot be blank", s.ref)
	}
	if s.parent.Resource, err = discovery.Named(ctx, kind); err != nil {
		return fmt.Errorf("invalid parent reference %q: %w", s.ref, err)
	}
	s.parent.ObjectName = name
	if s.parent.Namespaced && target.Chosen {
		s.parent.Namespace = target.Namespace
	}
	return nil
}

// checkSet checks the set against the other flags.
func (a *applyOptions) checkSet(ctx context.Context) error {
	s := &a.set
	switch {
	case !a.pruned.wanted:
		return errors.New("--applyset requires --prune")
	case a.pruned.all:
		return errors.New("--all is incompatible with --applyset")
	case a.Labels != "":
		return errors.New("--selector is incompatible with --applyset")
	case len(a.pruned.allowlist) > 0:
		return errors.New("--prune-allowlist is incompatible with --applyset")
	}
	if err := s.find(ctx, a.Sender.CLI); err != nil {
		return err
	}
	if s.parent.Namespaced && s.parent.Namespace == "" {
		return errors.New("namespace is required to use namespace-scoped ApplySet")
	}
	if s.builtin() {
		return nil
	}
	client, err := a.Server()
	if err != nil {
		return err
	}
	definitions, err := lookup.List(ctx, client.Resource(lookup.Definitions, ""),
		lookup.ChunkSize, rest.LabelSelector(setParentType))
	if err != nil {
		return fmt.Errorf("identifying allowed custom resource parent types: %w", err)
	}
	if !slices.ContainsFunc(definitions.Items,
		func(d unstructured.Unstructured) bool { return d.GetName() == s.parent.GVR().GroupResource().String() }) {
		return fmt.Errorf("resource %q is not permitted as an ApplySet parent", s.parent.GVR())
	}
	return nil
}

// builtin are kinds that may be parents, and are created if missing.
func (s *applySet) builtin() bool {
	return s.parent.GVR() == core.Secrets.GVR() || s.parent.GVR() == core.ConfigMaps.GVR()
}

// addLabels puts the members' label on the objects to be applied, and records
// their kinds and namespaces.
func (s *applySet) addLabels(targets []lookup.Target) error {
	s.after = newMembers()
	for _, t := range targets {
		labels := t.Object.GetLabels()
		if _, there := labels[setMember]; there {
			return fmt.Errorf("ApplySet label %q already set in input data", setMember)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[setMember] = s.id()
		t.Object.SetLabels(labels)
		s.after.kinds[t.GVK().GroupKind()] = t.Resource
		if t.Namespaced {
			s.after.namespaces[t.Namespace] = true
		}
	}
	return nil
}

// beginSet reads the parent, and records old and new members in it before any of the
// new ones exist, so that an apply that is cut short loses none.
func (a *applyOptions) beginSet(ctx context.Context, targets []lookup.Target) error {
	s := &a.set
	if err := s.addLabels(targets); err != nil {
		return err
	}
	s.before = newMembers()
	client, err := a.Server()
	if err != nil {
		return err
	}
	var answer []byte
	switch err := s.parent.In(client).Get(ctx, s.parent.ObjectName, &answer); {
	case apierrors.IsNotFound(err) && s.builtin():
	case apierrors.IsNotFound(err):
		return errors.New("custom resource ApplySet parents cannot be created automatically")
	case err != nil:
		return fmt.Errorf("failed to fetch ApplySet parent object %q: %w", s.name(), err)
	default:
		parent, err := lookup.Decode(answer)
		if err != nil {
			return err
		}
		if err := s.readParent(ctx, a.Sender.CLI, parent); err != nil {
			return err
		}
	}
	both := newMembers()
	for _, part := range []applySetMembers{s.before, s.after} {
		maps.Copy(both.kinds, part.kinds)
		maps.Copy(both.namespaces, part.namespaces)
	}
	return a.writeSet(ctx, both)
}

// readParent reads the set's labels and annotations from its parent, if kctl
// may change the set.
func (s *applySet) readParent(ctx context.Context, c *frame.CLI, parent *unstructured.Unstructured) error {
	annotations := parent.GetAnnotations()
	tool, there := annotations[setTool]
	if !there {
		return fmt.Errorf("ApplySet parent object %q already exists and is missing required annotation %q", s.name(), setTool)
	}
	if at := strings.LastIndex(tool, "/"); at >= 0 {
		tool = tool[:at]
	}
	if tool != setToolName {
		return fmt.Errorf("ApplySet parent object %q already exists and is managed by tooling %q instead of %q", s.name(), tool, setToolName)
	}
	id, there := parent.GetLabels()[setID]
	if !there {
		return fmt.Errorf("ApplySet parent object %q exists and does not have required label %s", s.name(), setID)
	}
	if id != s.id() {
		return fmt.Errorf("ApplySet parent object %q exists and has incorrect value for label %q (got: %s, want: %s)",
			s.name(), setID, id, s.id())
	}
	if err := s.readKinds(ctx, c, annotations); err != nil {
		return fmt.Errorf("parsing ApplySet annotation on %q: %w", s.name(), err)
	}
	for _, namespace := range splitList(annotations[setNamespaces]) {
		s.before.namespaces[namespace] = true
	}
	if s.parent.Namespaced {
		s.before.namespaces[s.parent.Namespace] = true
	}
	return nil
}

func (s *applySet) readKinds(ctx context.Context, c *frame.CLI, annotations map[string]string) error {
	discovery, err := c.Discovery()
	if err != nil {
		return err
	}
	kinds, there := annotations[setKinds]
	if !there && annotations[setResources] == "" {
		return fmt.Errorf("kubectl requires the %q annotation to be set on all ApplySet parent objects", setKinds)
	}
	for _, text := range splitList(kinds) {
		resource, err := discovery.OfGroupKind(ctx, schema.ParseGroupKind(text))
		if err != nil {
			return fmt.Errorf("could not find mapping for kind in %q annotation: %w", setKinds, err)
		}
		s.before.kinds[resource.GVK().GroupKind()] = resource
	}
	if there {
		return nil
	}
	for _, text := range splitList(annotations[setResources]) {
		resource, err := discovery.Named(ctx, text)
		if err != nil {
			return fmt.Errorf("invalid group resource in %q annotation: %w", setResources, err)
		}
		s.before.kinds[resource.GVK().GroupKind()] = resource
	}
	return nil
}

// splitList returns the parts of a comma-separated list.
func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// writeSet records in the parent where members are. It is a server-side apply, so
// annotations that are not among these are removed.
func (a *applyOptions) writeSet(ctx context.Context, where applySetMembers) error {
	if a.DryRun == frame.DryRunClient {
		return nil
	}
	s := &a.set
	kinds := []string{}
	for kind := range where.kinds {
		kinds = append(kinds, kind.String())
	}
	slices.Sort(kinds)
	namespaces := slices.DeleteFunc(slices.Sorted(maps.Keys(where.namespaces)), func(n string) bool { return n == s.parent.Namespace })
	parent := map[string]any{"apiVersion": s.parent.GVK().GroupVersion().String(), "kind": s.parent.Kind, "metadata": map[string]any{
		"name": s.parent.ObjectName, "namespace": s.parent.Namespace, "labels": map[string]string{setID: s.id()},
		"annotations": map[string]string{
			setTool:       setToolName + "/" + release.Version().GitVersion,
			setKinds:      strings.Join(kinds, ","),
			setNamespaces: strings.Join(namespaces, ","),
		},
	}}
	body, err := json.Marshal(parent)
	if err != nil {
		return fmt.Errorf("encode ApplySet: %w", err)
	}
	manager := a.Manager
	defer func() { a.Manager = manager }()
	a.Manager = setToolName + "-applyset"
	_, err = a.send(ctx, s.parent, types.ApplyPatchType, body)
	if apierrors.IsConflict(err) {
		a.Warn("failed to update ApplySet: %v\nApplySet field manager %s should own these fields. Retrying with conflicts forced.",
			err, a.Manager)
		_, err = a.send(ctx, s.parent, types.ApplyPatchType, body, rest.Query("force", "true"))
	}
	if err != nil {
		return fmt.Errorf("failed to update ApplySet: %w", err)
	}
	return nil
}

// pruneSet deletes the members that were not applied, and removes their places from
// the parent.
func (a *applyOptions) pruneSet(ctx context.Context) error {
	left, err := a.leftOver(ctx)
	if err != nil {
		return err
	}
	for _, t := range left {
		if err := a.pruneOne(ctx, t); err != nil {
			return err
		}
	}
	if err := a.writeSet(ctx, a.set.after); err != nil {
		return fmt.Errorf("apply and prune succeeded, but ApplySet update failed: %w", err)
	}
	return nil
}

// leftOver are the members that were not applied, kind by kind in the order of their
// names. Where one kind can't be listed, nothing is deleted.
func (a *applyOptions) leftOver(ctx context.Context) ([]lookup.Target, error) {
	s := &a.set
	client, err := a.Server()
	if err != nil {
		return nil, err
	}
	var out []lookup.Target
	for _, resource := range s.before.resources() {
		namespaces := []string{""}
		if resource.Namespaced {
			namespaces = slices.Sorted(maps.Keys(s.before.namespaces))
		}
		for _, namespace := range namespaces {
			t := lookup.Target{Resource: resource, Namespace: namespace}
			found, err := lookup.List(ctx, t.In(client), lookup.ChunkSize, rest.LabelSelector(setMember+"="+s.id()))
			if err != nil {
				return nil, fmt.Errorf("listing %s objects for pruning: %w", resource.GVK(), err)
			}
			for i := range found.Items {
				if t.ObjectName, t.Object = found.Items[i].GetName(), &found.Items[i]; !a.pruned.uids[found.Items[i].GetUID()] {
					out = append(out, t)
				}
			}
		}
	}
	return out, nil
}
