package framework

// NormalizeByMax scales scores to between MinNodeScore and MaxNodeScore, in
// proportion to the largest; reverse makes the largest the worst.
func NormalizeByMax(scores []int64, reverse bool) {
	var largest int64
	for _, s := range scores {
		largest = max(largest, s)
	}
	for i, s := range scores {
		if largest > 0 {
			scores[i] = MaxNodeScore * s / largest
		}
		if reverse {
			scores[i] = MaxNodeScore - scores[i]
		}
	}
}
