package registry

import (
	"context"
	"math"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/storage/cache"
)

// freshness is how new what is read has to be.
type freshness struct {
	current  bool  // as new as etcd is
	revision int64 // at least this; 0 for anything
}

// parseFreshness reads a resourceVersion: empty for the current state, "0" for
// any, a number for that revision or newer.
func parseFreshness(resourceVersion string) (freshness, error) {
	if resourceVersion == "" {
		return freshness{current: true}, nil
	}
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return freshness{}, apierrors.NewBadRequest("invalid resource version: resourceVersion: Invalid value: " +
			strconv.Quote(resourceVersion) + ": " + err.Error())
	}
	return freshness{revision: int64(min(revision, math.MaxInt64))}, nil
}

func (f freshness) wait(ctx context.Context, c *cache.Cache) error {
	switch {
	case f.current:
		return c.WaitCurrent(ctx)
	case f.revision == 0:
		return c.WaitReady(ctx)
	}
	return c.WaitFor(ctx, f.revision)
}

// listPlan is how a list is read.
type listPlan struct {
	freshness freshness
	exact     bool // at freshness.revision, not newer
	after     string
}

func planList(prefix string, o ListOptions) (listPlan, error) {
	if o.Continue != "" {
		return planContinue(prefix, o)
	}
	fresh, err := parseFreshness(o.ResourceVersion)
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if o.ResourceVersionMatch == "" && o.Limit > 0 && fresh.revision > 0 && !selectsByName(o) {
		exact = true // a page belongs to exactly that state (API concepts, "Resource versions")
	}
	return listPlan{freshness: fresh, exact: exact}, err
}

// selectsByName: the list has one object at most.
func selectsByName(o ListOptions) bool {
	if o.Fields == nil {
		return false
	}
	_, one := o.Fields.RequiresExactMatch("metadata.name")
	return one
}

// checkListMatch returns what is wrong with the options of a list, in
// upstream's order.
func checkListMatch(o ListOptions) field.ErrorList {
	match := field.NewPath("resourceVersionMatch")
	var errs field.ErrorList
	if o.ResourceVersionMatch != "" {
		if o.ResourceVersion == "" {
			errs = append(errs, field.Forbidden(match, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		}
		if o.Continue != "" {
			errs = append(errs, field.Forbidden(match, "resourceVersionMatch is forbidden when continue is provided"))
		}
	}
	switch o.ResourceVersionMatch {
	case "", metav1.ResourceVersionMatchNotOlderThan:
	case metav1.ResourceVersionMatchExact:
		if o.ResourceVersion == "0" {
			errs = append(errs, field.Forbidden(match, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
		}
	default:
		errs = append(errs, field.NotSupported(match, o.ResourceVersionMatch,
			[]string{string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan), ""}))
	}
	if o.SendInitialEvents != nil {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	}
	return errs
}

func planContinue(prefix string, o ListOptions) (listPlan, error) {
	after, revision, err := decodeToken(prefix, o.Continue)
	if err != nil {
		return listPlan{}, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return listPlan{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	if revision == latest {
		return listPlan{freshness: freshness{current: true}, after: after}, nil
	}
	return listPlan{freshness: freshness{revision: revision}, exact: true, after: after}, nil
}

// watchPlan is where a watch begins.
type watchPlan struct {
	freshness         freshness
	since             int64
	sinceNow          bool
	sendInitialEvents bool
	initialEventsEnd  bool
}

// planWatch returns where a watch begins. Without a resourceVersion, or with
// "0", it begins with the existing objects; sendInitialEvents asks for them, or
// declines them, explicitly (API concepts, "Streaming lists").
func planWatch(o ListOptions) (watchPlan, error) {
	fresh, err := parseFreshness(o.ResourceVersion)
	if err != nil {
		return watchPlan{}, err
	}
	noVersion := fresh.current || fresh.revision == 0
	plan := watchPlan{freshness: fresh, since: fresh.revision}
	switch {
	case o.SendInitialEvents != nil && *o.SendInitialEvents:
		plan.sendInitialEvents, plan.initialEventsEnd = true, o.AllowBookmarks
	case noVersion && o.SendInitialEvents != nil:
		plan.sinceNow = true
	case noVersion:
		plan.sendInitialEvents, plan.initialEventsEnd = true, o.AllowBookmarks // as kube-apiserver 1.37 does even unasked
	default:
		// Changes after a known revision come as they come.
		plan.freshness = freshness{}
	}
	return plan, nil
}

func checkWatchMatch(o ListOptions) error {
	match := field.NewPath("resourceVersionMatch")
	var errs field.ErrorList
	if o.Continue != "" {
		errs = append(errs, field.Forbidden(match, "resourceVersionMatch is forbidden when continue is provided"))
	}
	switch {
	case o.SendInitialEvents == nil && o.ResourceVersionMatch != "":
		errs = append(errs, field.Forbidden(match, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	case o.SendInitialEvents != nil && o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan:
		errs = append(errs, field.Forbidden(match, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if o.ResourceVersionMatch != "" && o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		errs = append(errs, field.NotSupported(match, o.ResourceVersionMatch, []string{string(metav1.ResourceVersionMatchNotOlderThan)}))
	}
	if len(errs) > 0 {
		return invalidOptions(errs)
	}
	return nil
}

func invalidOptions(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}
