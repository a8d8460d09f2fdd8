package dataset

import "github.com/graphnb/graphnb/graphops/dataset/notice"

// MaxFeatureNames is the largest number of bytes of feature names that a dataset keeps.
const MaxFeatureNames = 4 << 20

// maxNotices is the largest number of notices that a dataset keeps.
const maxNotices = 200

// namesOf returns names if there is one for each column, and otherwise none: features that a program replaced have other
// columns.
func namesOf(names []string, columns int) []string {
	if len(names) != columns {
		return nil
	}
	return names
}

// KeepNames returns the names of features that a dataset keeps: none if they are too long, with a notice.
func KeepNames(names []string, where string, said notice.Func) []string {
	size := 0
	for _, n := range names {
		size += len(n)
	}
	if size > MaxFeatureNames {
		said.Add(notice.Notice{Kind: notice.Unrepresentable, Where: where, What: "the names of the features are too long to keep, so columns of other files will be matched by place", Count: int64(len(names))})
		return nil
	}
	return names
}

// KeepNotices returns what a dataset keeps of a reader's notices: those that say that something was done.
func KeepNotices(all notice.List) notice.List {
	done := all.Done()
	if len(done) > maxNotices {
		more := int64(len(done) - maxNotices)
		done = append(done[:maxNotices:maxNotices], notice.Notice{Kind: notice.Told, What: "more notices were printed when the files were read", Count: more})
	}
	return done
}
