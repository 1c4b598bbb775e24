package resources_test

import (
	"slices"
	"testing"
)

// TestWhatADeletionAnswers: kube-apiserver answers the deletion of these resources with the
// final state of the object, and that of all others with a Status.
func TestWhatADeletionAnswers(t *testing.T) {
	want := []string{
		"csidrivers", "csinodes", "deviceclasses", "persistentvolumeclaims", "persistentvolumes", "pods",
		"podtemplates", "resourceclaims", "resourceclaimtemplates", "resourcequotas", "resourceslices", "serviceaccounts", "services",
		"storageclasses", "volumeattachments", "volumeattributesclasses",
	}
	var got []string
	for _, served := range start(t).served {
		if info := served.Resource.Info(); info.ReturnDeletedObject {
			got = append(got, info.Resource.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the deletion of these is answered with the object: %v; wanted %v", got, want)
	}
}
