package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/kubectl/internal/printer"
)

// replace sets a top-level field of every object that the arguments mean to
// what edit returns; nil leaves an object alone.
func (s *setOptions) replace(cmd *cobra.Command, args []string, operation string,
	edit func(lookup.Target, *unstructured.Unstructured) (map[string]any, error)) error {
	one := func(t lookup.Target, object *unstructured.Unstructured) error {
		change, err := edit(t, object)
		if err != nil || change == nil {
			return err
		}
		patch, err := json.Marshal(change)
		if err != nil {
			return fmt.Errorf("encoding the patch: %w", err)
		}
		if patch, err = s.WithCause(patch); err != nil {
			return err
		}
		if s.local || s.DryRun == frame.DryRunClient {
			var changed map[string]any
			if err := json.Unmarshal(patch, &changed); err != nil {
				return fmt.Errorf("decoding the patch: %w", err)
			}
			merge(object.Object, changed)
			return s.Print(&s.Printing, s.DryRun.Mark(operation), object)
		}
		changed, err := s.Patch(cmd.Context(), t, types.MergePatchType, patch)
		if err != nil {
			return err
		}
		return s.Print(&s.Printing, s.DryRun.Mark(operation), changed)
	}
	return s.onEach(cmd.Context(), args, one)
}

// merge lays a JSON merge patch over an object.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, isMap := value.(map[string]any)
		have, hasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hasMap:
			merge(have, below)
		default:
			into[key] = value
		}
	}
}

func newSetSelector(c *frame.CLI) *cobra.Command {
	s := &setOptions{Sender: send.Sender{CLI: c}}
	var version string
	cmd := &cobra.Command{
		Use:     "selector (-f FILE | service NAME | service/NAME) EXPRESSIONS",
		Short:   "Set the selector on a service",
		Example: "  kctl set selector service web app=web,tier=front",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("one or more resources must be specified as <resource> <name> or <resource>/<name>")
			}
			last := len(args) - 1
			wanted, err := metav1.ParseToLabelSelector(args[last])
			if err != nil {
				return err
			}
			if len(args) == 2 && !s.All && !s.FromFiles() && !strings.Contains(args[0], "/") {
				return lookup.ErrNoName
			}
			if len(wanted.MatchExpressions) > 0 {
				return fmt.Errorf("match expression %v not supported on this object", wanted.MatchExpressions)
			}
			return s.replace(cmd, args[:last], "selector updated", func(_ lookup.Target, object *unstructured.Unstructured) (map[string]any, error) {
				if object.GetKind() != "Service" {
					return nil, errors.New("setting a selector is only supported for Services")
				}
				patch := map[string]any{"spec": map[string]any{"selector": selectorPatch(object, wanted.MatchLabels)}}
				if version != "" {
					patch["metadata"] = map[string]any{"resourceVersion": version}
				}
				return patch, nil
			})
		},
	}
	s.add(cmd)
	s.RecurseFiles(cmd.Flags())
	s.AddRecord(cmd)
	cmd.Flags().StringVar(&version, "resource-version", "",
		"If non-empty, the selectors update will only succeed if this is the current resource-version for the object. Only valid when "+
			"specifying a single resource.")
	return cmd
}

// selectorPatch is a merge patch that gives a service the wanted selector, and takes the
// rest of the one that it has away.
func selectorPatch(object *unstructured.Unstructured, wanted map[string]string) map[string]any {
	patch := map[string]any{}
	have, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
	for key := range have {
		patch[key] = nil // a merge patch keeps what it does not name
	}
	for key, value := range wanted {
		patch[key] = value
	}
	return patch
}

func newSetSubject(c *frame.CLI) *cobra.Command {
	s := &setOptions{Sender: send.Sender{CLI: c}}
	var users, groups, accounts []string
	cmd := &cobra.Command{
		Use:   "subject (-f FILE | TYPE NAME | TYPE/NAME) [--user=NAME] [--group=NAME] [--serviceaccount=NAMESPACE:NAME]",
		Short: "Update the user, group, or service account in a role binding or cluster role binding",
		Example: "  kctl set subject rolebinding readers --user=alice --group=developers\n" +
			"  kctl set subject clusterrolebinding viewers --serviceaccount=default:robot",
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := generate.Subjects(users, groups, accounts)
			if err != nil {
				return err
			}
			if len(wanted) == 0 {
				return errors.New("you must specify at least one value of user, group or serviceaccount")
			}
			return s.replace(cmd, args, "subjects updated", func(t lookup.Target, object *unstructured.Unstructured) (map[string]any, error) {
				return withSubjects(t, object, wanted)
			})
		},
	}
	s.add(cmd)
	cmd.Flags().StringArrayVar(&users, "user", nil, "Usernames to bind to the role")
	cmd.Flags().StringArrayVar(&groups, "group", nil, "Groups to bind to the role")
	cmd.Flags().StringArrayVar(&accounts, "serviceaccount", nil, "Service accounts to bind to the role")
	return cmd
}

// withSubjects are a binding's subjects and the wanted ones; nil if it has them
// all.
func withSubjects(t lookup.Target, object *unstructured.Unstructured, wanted []rbacv1.Subject) (map[string]any, error) {
	if kind := object.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
		return nil, fmt.Errorf("%s setting subjects is only supported for RoleBinding/ClusterRoleBinding",
			printer.ObjectName(t.GVK(), object.GetName()))
	}
	binding := &rbacv1.RoleBinding{}
	if err := lookup.Typed(object, binding); err != nil {
		return nil, err
	}
	before := len(binding.Subjects)
	for _, each := range wanted {
		if !slices.Contains(binding.Subjects, each) {
			binding.Subjects = append(binding.Subjects, each)
		}
	}
	if len(binding.Subjects) == before {
		return nil, nil
	}
	return map[string]any{"subjects": binding.Subjects}, nil
}
