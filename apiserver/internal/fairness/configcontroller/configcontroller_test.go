package configcontroller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/eventually"
)

// options are for a share on an empty etcd.
func options(t *testing.T, clock *testclock.FakeClock, bootstrapped <-chan struct{}) Options {
	t.Helper()
	stored := registry.Options{Storage: etcdtest.Start(t), Clock: clock, Logger: zap.NewNop()}
	o := Options{
		Schemas: registry.NewStore(flowcontrol.Schemas(clock), stored), Levels: registry.NewStore(flowcontrol.Levels(clock), stored),
		Seats: 100, Bootstrapped: bootstrapped, Metrics: prometheus.NewRegistry(), Clock: clock, Logger: zap.NewNop(),
	}
	run(t, o.Schemas.Run)
	run(t, o.Levels.Run)
	if err := errors.Join(o.Schemas.WaitReady(t.Context()), o.Levels.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	return o
}

func run(t *testing.T, loop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- loop(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("loop ended with %v", err)
		}
	})
}

// The stored configuration applies once every cluster's default objects exist;
// until then the built-in one does.
func TestRun(t *testing.T) {
	bootstrapped := make(chan struct{})
	clock := testclock.NewFakeClock(time.Now())
	o := options(t, clock, bootstrapped)
	level, err := o.Levels.CreateTyped(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type:    flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Schemas.CreateTyped(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			MatchingPrecedence: 50, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "mine"},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:         []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "jane"}}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
			}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	share := New(o)
	run(t, share.Run)
	mine := func() bool {
		ticket := share.Fairness.Find(&request.User{Username: "jane"}, &request.Info{Verb: "get", Path: "/version"})
		return slices.Contains(ticket.LevelID(), string(level.UID))
	}
	applied := func() bool {
		select {
		case <-share.Applied():
			return true
		default:
			return false
		}
	}
	if applied() || mine() {
		t.Error("the stored configuration applies before the default objects exist")
	}
	close(bootstrapped)
	eventually.Holds(t, "what is stored is in force", func() bool {
		clock.Step(time.Second) // a read that has to be repeated waits for the clock
		return applied()
	})
	if !mine() {
		t.Error("the stored configuration does not apply")
	}
}

// Default objects are created again when somebody deletes them.
func TestMaintain(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	o := options(t, clock, nil)
	if err := flowcontrol.Bootstrap(t.Context(), o.Schemas, o.Levels); err != nil {
		t.Fatal(err)
	}
	const taken = "global-default"
	if _, _, err := o.Schemas.Delete(t.Context(), "", taken, registry.Admission{}, nil); err != nil {
		t.Fatal(err)
	}
	run(t, o.Maintain)
	eventually.Holds(t, "it is there again", func() bool {
		clock.Step(maintainEvery)
		_, err := registry.GetStored[*flowcontrolv1.FlowSchema](t.Context(), o.Schemas, "", taken)
		return err == nil
	})
}

// Two servers that disagree about a schema write its condition six times a minute, not
// without end, and the last word is written when the minute is over.
func TestConditionsAreNotFoughtOver(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	o := options(t, clock, nil)
	if err := flowcontrol.Bootstrap(t.Context(), o.Schemas, o.Levels); err != nil {
		t.Fatal(err)
	}
	const name = "probes"
	unnoted, err := registry.GetStored[*flowcontrolv1.FlowSchema](t.Context(), o.Schemas, "", name)
	if err != nil {
		t.Fatal(err)
	}
	share := New(o)
	writes, version := 0, unnoted.ResourceVersion
	note := func(missing bool) {
		t.Helper()
		if err := share.noteDangling(t.Context(), unnoted, missing); err != nil {
			t.Fatal(err)
		}
		now, err := registry.GetStored[*flowcontrolv1.FlowSchema](t.Context(), o.Schemas, "", name)
		if err != nil {
			t.Fatal(err)
		}
		if now.ResourceVersion != version {
			writes, version = writes+1, now.ResourceVersion
		}
	}
	for i := range 10 {
		note(i%2 == 0)
	}
	if writes != notesPerMinute || !share.late.Load() {
		t.Errorf("%d writes, late %t", writes, share.late.Load())
	}
	clock.Step(time.Minute)
	if note(true); writes != notesPerMinute+1 || len(share.noted[name]) != 1 {
		t.Errorf("after a minute: %d writes, remembered are %v", writes, share.noted)
	}
	run(t, share.noteLate)
	eventually.Holds(t, "the controller is told to look again", func() bool {
		clock.Step(time.Minute)
		return !share.late.Load()
	})
}
