package batch

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// If a job's generated name was taken, its labels get the next one; labels that
// the user set to the first name stay.
func TestRenamed(t *testing.T) {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-1", UID: "u"}}
	j.Spec.Template.Labels = map[string]string{"mine": "job-1"}
	generateSelector(j)
	j.Name = "job-2"
	replaceTakenName(j, "job-1")
	labels := j.Spec.Template.Labels
	if labels[oldNameLabel] != "job-2" || labels[batchv1.JobNameLabel] != "job-2" || labels["mine"] != "job-1" {
		t.Errorf("labels %v", labels)
	}
	if errs := validateManualSelector(j); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
}

// TestUpdate: kube-apiserver v1.37.2's answers to changes of a job's template.
func TestUpdate(t *testing.T) {
	const (
		pods      = "completions: 1, template: {spec: {affinity: {podAffinity: {}}, containers: [{name: a, image: i}]}}"
		suspended = "suspend: true, " + pods
		stopped   = started + ", conditions: [{type: Suspended, status: 'True'}]"
		immutable = "Invalid value: "
	)
	scheduled := strings.NewReplacer("spec: {affinity: {", "metadata: {labels: {a: b}}, spec: {nodeSelector: {a: b}, affinity: {nodeAffinity: {}, ",
		"image: i", "image: i, resources: {limits: {cpu: 1}}")
	for name, test := range map[string]struct{ old, status, now, want string }{
		"running":                 {pods, started, scheduled.Replace(pods), "spec.template: " + immutable},
		"never started":           {suspended, "", scheduled.Replace(suspended), ""},
		"never started, has pods": {suspended, "active: 1", scheduled.Replace(suspended), "spec.template: " + immutable},
		"being suspended":         {suspended, started, scheduled.Replace(suspended), "spec.template: " + immutable},
		"suspended":               {suspended, stopped, scheduled.Replace(suspended), ""},
		"suspended, resumed":      {suspended, stopped, scheduled.Replace(pods), ""},
		"suspended, has pods":     {suspended, stopped + ", active: 1", scheduled.Replace(suspended), "spec.template: " + immutable},
		"resumed":                 {pods, stopped, scheduled.Replace(pods), "spec.template: " + immutable},
		"another image":           {suspended, "", strings.Replace(suspended, "image: i", "image: j", 1), "spec.template.spec: " + immutable},
		"pods' affinity": {suspended, "", strings.Replace(suspended, "podAffinity", "podAntiAffinity", 1),
			"spec.template.spec: " + immutable},
		"no affinity": {suspended, "", strings.Replace(suspended, "affinity: {podAffinity: {}}, ", "", 1), "spec.template.spec: " + immutable},
		"no nodes' affinity": {strings.Replace(suspended, "podAffinity", "nodeAffinity", 1), "",
			strings.Replace(suspended, "affinity: {podAffinity: {}}, ", "", 1), ""},
		"first nodes' affinity": {strings.Replace(suspended, "affinity: {podAffinity: {}}, ", "", 1), "",
			strings.Replace(suspended, "podAffinity", "nodeAffinity", 1), ""},
	} {
		errs := sameJob(job(t, test.now, ""), job(t, test.old, test.status))
		switch {
		case test.want == "" && len(errs) > 0:
			t.Errorf("%s: refused: %v", name, errs)
		case test.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), test.want)):
			t.Errorf("%s: got %v, want %s", name, errs, test.want)
		}
	}
}
