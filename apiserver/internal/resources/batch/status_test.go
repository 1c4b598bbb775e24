package batch

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

const (
	started  = "startTime: 2026-01-01T00:00:00Z"
	complete = started + ", completionTime: 2026-01-02T00:00:00Z, conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]"
	failed   = started + ", conditions: [{type: FailureTarget, status: 'True'}, {type: Failed, status: 'True'}]"
)

func job(t *testing.T, spec, status string) *batchv1.Job {
	t.Helper()
	j := &batchv1.Job{}
	if err := yaml.UnmarshalStrict([]byte("{spec: {"+spec+"}, status: {"+status+"}}"), j); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestStatus: kube-apiserver v1.37.0's messages for changes of a job's status.
func TestStatus(t *testing.T) {
	const (
		one     = "completions: 1, completionMode: NonIndexed"
		indexed = "completions: 5, completionMode: Indexed, backoffLimitPerIndex: 1"
	)
	for name, test := range map[string]struct{ spec, old, now, want string }{
		"started":  {one, "", started, ""},
		"complete": {one, "", complete, ""},
		"failed":   {one, started, failed, ""},
		"negative": {one, "", "active: -1, failed: -1",
			"status.active: Invalid value: -1: must be greater than or equal to 0; status.failed: Invalid value: -1: must be greater than or equal to 0; " +
				"status.failed: Invalid value: -1: cannot decrease the failed counter"},
		"ready": {one, "", "active: 1, ready: 2", "status.ready: Invalid value: 2: cannot set more ready pods than active"},
		"complete for nothing": {one, "", "conditions: [{type: Complete, status: 'True'}]",
			"status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition; status.completionTime: Required " +
				"value: completionTime is required for Complete jobs; status.startTime: Required value: startTime is required for finished job"},
		"by the policy": {one + ", successPolicy: {rules: []}", "", started +
			", completionTime: 2026-01-02T00:00:00Z, conditions: [{type: Complete, status: 'True'}]",
			"status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition; status.conditions: Invalid value: " +
				"cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
		"ended before": {one, "", strings.Replace(complete, "completionTime: 2026", "completionTime: 2025", 1),
			"status.completionTime: Invalid value: \"2025-01-02T00:00:00Z\": must be equal to or after `startTime`"},
		"ended, not complete": {one, "", started + ", completionTime: 2026-01-02T00:00:00Z",
			`status.completionTime: Invalid value: "2026-01-02T00:00:00Z": cannot set completionTime when there is no Complete=True condition`},
		"ended before, not complete": {one, "", started + ", completionTime: 2025-01-02T00:00:00Z",
			`status.completionTime: Invalid value: "2025-01-02T00:00:00Z": cannot set completionTime when there is no Complete=True condition; ` +
				"status.completionTime: Invalid value: \"2025-01-02T00:00:00Z\": must be equal to or after `startTime`"},
		"complete, and why": {one, strings.Replace(complete, "{type: SuccessCriteriaMet, status: 'True'}, ", "", 1), complete,
			"status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"},
		"failed for nothing": {one, "", started + ", conditions: [{type: Failed, status: 'True'}]",
			"status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition"},
		"all at once": {one, "",
			started +
				", completionTime: 2026-01-02T00:00:00Z, conditions: [{type: Complete, status: 'True'}, {type: Failed, status: 'True'}, {type: SuccessCriteriaMet, " +
				"status: 'True'}, {type: FailureTarget, status: 'True'}]",
			"status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions; status.conditions: Invalid value: cannot set Complete=True and " +
				"FailureTarget=true conditions; " +
				"status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions; status.conditions: Invalid value: cannot set " +
				"SuccessCriteriaMet=True and FailureTarget=true conditions"},
		"over with pods": {one, "", "active: 1, terminating: 1, uncountedTerminatedPods: {failed: [a]}, " + failed,
			`status.active: Invalid value: 1: active>0 is invalid for finished job; status.terminating: Invalid value: 1: terminating>0 is invalid for finished job; status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a"]}: must be empty for finished job`},
		"uncounted": {one, "", "uncountedTerminatedPods: {succeeded: [a, a], failed: ['', a, c]}",
			`status.uncountedTerminatedPods.succeeded[1]: Duplicate value: "a"; status.uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty; status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"`},
		"indexes of one": {one, "", "completedIndexes: '1', failedIndexes: '1'",
			`status.completedIndexes: Invalid value: "1": cannot set non-empty completedIndexes when non-indexed completion mode; status.failedIndexes: Invalid value: "1": cannot set non-null failedIndexes when backoffLimitPerIndex is null`},
		"indexes": {indexed, "", "completedIndexes: '0-1,3', failedIndexes: '2,4'", ""},
		"indexes in both": {indexed, "", "completedIndexes: '2-3', failedIndexes: '0-2'",
			`status.failedIndexes: Invalid value: "0-2": failedIndexes and completedIndexes overlap at index: 2`},
		"indexes out of order": {indexed, "", "completedIndexes: '1,0'",
			`status.completedIndexes: Invalid value: "1,0": error parsing completedIndexes: non-increasing order, previous: 1, current: 0`},
		"too large an index": {indexed, "", "failedIndexes: '0-5'",
			`status.failedIndexes: Invalid value: "0-5": error parsing failedIndexes: too large index: "5"`},
		"no index": {indexed, "", "completedIndexes: '0-'",
			`status.completedIndexes: Invalid value: "0-": error parsing completedIndexes: cannot convert string to integer for index: ""`},
		"start moved": {one, started, "startTime: 2026-01-02T00:00:00Z",
			`status.startTime: Invalid value: "2026-01-02T00:00:00Z": field is immutable for unsuspended job once set`},
		"start gone":           {one, started, "", "status.startTime: Invalid value: null: field is immutable for unsuspended job once set"},
		"start moved, waiting": {one + ", suspend: true", started, "", ""},
		"fewer": {one, "succeeded: 3, failed: 3", "succeeded: 1, failed: 1",
			"status.failed: Invalid value: 1: cannot decrease the failed counter; status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"},
		"fewer of many":      {indexed, "succeeded: 3", "succeeded: 1", "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"},
		"fewer, scaled down": {indexed + ", parallelism: 5", "succeeded: 3", "succeeded: 1", ""},
		"start moved, resumed": {one, started + ", conditions: [{type: Suspended, status: 'True'}]",
			"startTime: 2026-01-02T00:00:00Z, conditions: [{type: Suspended, status: 'False'}]", ""},
		"nothing to do": {"completions: 0, suspend: true", "",
			"completionTime: 2026-01-02T00:00:00Z, conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]", ""},
		"no longer failed": {one, failed, started,
			"status.conditions: Invalid value: cannot disable the terminal Failed=True condition; status.conditions: Invalid value: cannot disable the terminal " +
				"FailureTarget=True condition"},
		"no longer complete": {one, complete, started + ", conditions: []",
			"status.conditions: Invalid value: cannot disable the terminal Complete=True condition; status.conditions: Invalid value: cannot disable the " +
				"SuccessCriteriaMet=True condition"},
		"another end": {one, complete, strings.Replace(complete, "01-02", "01-03", 1),
			`status.completionTime: Invalid value: "2026-01-03T00:00:00Z": field is immutable`},
		"one more after it all": {one, complete, "succeeded: 5, " + complete, ""},
		"what was wrong before": {one, "ready: 2, uncountedTerminatedPods: {failed: ['']}", "ready: 3, uncountedTerminatedPods: {failed: ['']}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, e := range validateStatus(job(t, test.spec, test.now), job(t, test.spec, test.old)) {
				said = append(said, e.Error())
			}
			if got := strings.Join(said, "; "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestStatusKeepsLabels: whoever writes a status without labels leaves the job those of its pods.
func TestStatusKeepsLabels(t *testing.T) {
	old := &batchv1.Job{}
	old.Spec.Template.Labels = map[string]string{batchv1.JobNameLabel: "a"}
	j := &batchv1.Job{}
	jobs(clock.RealClock{}).Status.Prepare(t.Context(), j, old)
	if j.Labels[batchv1.JobNameLabel] != "a" {
		t.Errorf("labels are %v", j.Labels)
	}
}
