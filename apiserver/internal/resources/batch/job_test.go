package batch

import (
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
