package customresources

import apimachineryversion "k8s.io/apimachinery/pkg/version"

// compareVersions orders versions as clients prefer them: v2 before v1, those
// with alpha or beta last. It is negative if a comes after b.
func compareVersions(a, b string) int {
	return apimachineryversion.CompareKubeAwareVersionStrings(a, b)
}
