// Package deploy brings a trained run to a machine that answers: as a directory with what answers need and nothing else, or as one
// file, a program with that directory inside.
//
// # Basics
//
// [Export] writes the directory. It is a run's directory (runs.Open) with the dataset inside (its DatasetSpec), so that
// predict.Open, gnb serve-model, gnb predict and gnb explain take it as they take the run, and answer with the same bits. [Build] appends an
// exported directory to a copy of a gnb program, and [OpenApp] maps it again.
//
// # Format of an app
//
// An app is an ELF program, followed, from the next multiple of 4096 on, by
//
//	"GNBAPP01"  magic
//	u64         size of the whole file, little-endian
//	u64         length of the table
//	u32         CRC-32C of the table
//	u32         zeros
//	table       JSON: [Table]
//	files       each at a multiple of 4096, zeros between them
//
// The header is in front of the files, so that a file that was cut is known from a program without any: the program's own headers say
// where it ends. The table has a checksum for each file and for the program.
//
// # Caveats
//
// Apps are for systems with ELF programs: Linux and the BSDs. A program of another architecture can be given to Build, and runs there.
// Checksums find damage; they do not protect from somebody who changes them too.
package deploy
