package doctor

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

var apiServices = core.Resource{Group: "apiregistration.k8s.io", Version: "v1", Name: "apiservices", Kind: "APIService"}

// apiServiceList are APIServices with no more than what tells whether they work.
type apiServiceList struct {
	Items []struct {
		Metadata metav1.ObjectMeta
		Status   struct{ Conditions []metav1.Condition }
	}
}

// judgeAPIServices looks for other servers' parts of the API that can't be reached: clients are told
// no more than that the service is unavailable, and no namespace can end meanwhile.
func judgeAPIServices(list apiServiceList) (checks []Check) {
	for _, s := range list.Items {
		for _, c := range s.Status.Conditions {
			if c.Type == "Available" && c.Status == metav1.ConditionFalse {
				checks = append(checks, fail("apiservice/"+s.Metadata.Name,
					"see that its server runs and that its certificate is of the caBundle; `kctl delete apiservice "+s.Metadata.Name+
						"` if it is not needed any more",
					"not available: %s", cmp.Or(c.Message, c.Reason)))
			}
		}
	}
	return checks
}
